"""The process that examines signatures, and the import that it needs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bundler.authenticode.child import SECONDS, examine
from bundler.authenticode.openssl_version import long_versions_readable
from bundler.authenticode.waiting import WaitingExaminer
from bundler.authenticode.worker import answer
from bundler.errors import MissingError
from tests.sample_archives import libraries
from tests.signed_libraries import image_digest, roots, signature

LIBRARY = libraries()["cudnn64_8.dll"]
OSCRYPTO = r"\b(\d\.\d\.\d[a-z]*)\b"


def test_a_process_examines_in_order() -> None:
    garbage, claims = examine([b"garbage", signature(LIBRARY)], roots())

    assert isinstance(garbage, str)
    assert not isinstance(claims, str)
    (claim,) = claims
    assert claim.digest == image_digest(LIBRARY)
    assert claim.signer.organisation == "NVIDIA Corporation"


def test_a_process_that_waits_answers_the_same() -> None:
    with WaitingExaminer() as waiting:
        waiting.start()
        waiting.start()
        assert waiting([signature(LIBRARY)], roots()) == examine([signature(LIBRARY)], roots())


def test_a_process_that_is_never_asked_goes() -> None:
    with WaitingExaminer() as waiting:
        waiting.start()
        process = waiting._process

    assert process is not None
    assert process.returncode is not None


def test_a_process_that_does_not_answer_in_time_is_ended() -> None:
    with WaitingExaminer() as waiting, pytest.raises(subprocess.TimeoutExpired):
        waiting._run((), b"", 0.0)


def test_the_working_folder_chooses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "signify", "oscrypto", "bundler"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    (found,) = examine([signature(LIBRARY)], roots())

    assert not isinstance(found, str)


def returning(code: int, stdout: bytes = b"") -> Callable[..., subprocess.CompletedProcess[bytes]]:
    return lambda *_, **__: subprocess.CompletedProcess([], code, stdout, b"")


def too_slow(
    _words: Sequence[str], _request: bytes, seconds: float
) -> subprocess.CompletedProcess[bytes]:
    raise subprocess.TimeoutExpired("python", seconds)


@pytest.mark.parametrize(
    ("run", "what"),
    [
        (returning(-11), "on which the check broke down (exit code -11)"),
        (returning(1), "on which the check broke down (exit code 1)"),
        (too_slow, f"did not end in {SECONDS} s"),
    ],
    ids=["crash", "error", "endless"],
)
def test_no_answer_is_no_signature(
    run: Callable[..., subprocess.CompletedProcess[bytes]], what: str
) -> None:
    found = examine([b"one", b"two"], None, run)

    assert len(found) == 2
    for each in found:
        assert isinstance(each, str)
        assert what in each


def test_what_is_lacking_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bundler.authenticode.signed_data", None)
    found = answer({"signatures": [], "roots": None})

    assert found["missing"].startswith("ModuleNotFoundError: ")
    with pytest.raises(MissingError, match="cannot be checked here") as caught:
        examine([b"one"], None, returning(0, b'{"missing": "ImportError: no signify"}'))
    assert "no signify" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("OpenSSL 3.0.19 27 Jan 2026", "3.0.19"),
        ("OpenSSL 3.5.4 30 Sep 2025", "3.5.4"),
        ("OpenSSL 1.1.1w  11 Sep 2023", "1.1.1w"),
        ("OpenSSL 10.20.30 1 Jan 2031", "10.20.30"),
    ],
)
def test_any_version_of_openssl_is_read(name: str, version: str) -> None:
    with long_versions_readable():
        found = re.search(OSCRYPTO, name)

    assert found
    assert found.group(1) == version


def test_other_searches_are_what_they_were() -> None:
    before = re.search
    with long_versions_readable():
        assert re.search(r"\d\.\d\.\d\b", "3.0.19") is None
        assert re.search("A", "a", re.IGNORECASE)
        assert re.search(re.compile("a"), "a")
        assert re.search(OSCRYPTO, "LibreSSL") is None

    assert re.search is before


def test_a_failed_import_leaves_nothing_behind() -> None:
    before = re.search
    with pytest.raises(ImportError), long_versions_readable():
        raise ImportError

    assert re.search is before
