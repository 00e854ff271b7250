"""Ctrl-C, SIGTERM and wrong usage, in words and as one JSON document."""

from __future__ import annotations

import errno
import json
import os
import signal
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import pytest

from bundler.__main__ import VERBS, main
from bundler.stopping import StoppedError, TerminatedError, stoppable, uninterrupted

Act = Callable[[], object]


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def terminate() -> None:
    signal.raise_signal(signal.SIGTERM)


def fail(error: Exception) -> Act:
    def failing() -> NoReturn:
        raise error

    return failing


STOPS = {
    "Ctrl-C": (interrupt, 130, "stopped; nothing is left half-written"),
    "SIGTERM": (terminate, 143, "stopped; nothing is left half-written"),
    "too many files": (fail(OSError(errno.EMFILE, "Too many")), 6, "no more open files"),
    "no memory": (fail(MemoryError()), 6, "no more memory"),
    "no memory for zstd": (fail(ValueError("not enough memory")), 6, "no more memory"),
    "no thread": (fail(RuntimeError("can't start new thread")), 6, "no more threads"),
}


@pytest.mark.parametrize(("act", "code", "words"), STOPS.values(), ids=STOPS.keys())
def test_a_stop_is_one_document(
    act: Act,
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(VERBS, "verify", lambda *_: act())

    assert main(["verify", "archive.zip", "--json"]) == code
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["exit_code"] == code
    assert words in document["what"]
    assert document["next"]
    assert words in printed.err
    assert "Traceback" not in printed.err


WRONG = {
    "no verb": ([], "the following arguments are required: VERB"),
    "another verb": (["bild"], "invalid choice: 'bild'"),
    "no archive": (["build"], "the following arguments are required: ARCHIVE"),
    "another option": (["verify", "a.zip", "--bogus"], "unrecognized arguments: --bogus"),
    "a bad level": (["build", "a.zip", "--conda-level", "99"], "'99' is not a zstd level"),
    "a bad kind": (["build", "a.zip", "--only", "rpm"], "--only: invalid"),
}


@pytest.mark.parametrize(("words", "what"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("flag", ["--json", "--js", ""])
def test_wrong_usage_is_one_document(
    words: list[str], what: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, *([flag] if flag else [])]) == 2
    printed = capsys.readouterr()

    assert what in printed.err
    assert "--help`" in printed.err
    if flag:
        assert what in json.loads(printed.out)["what"]
    else:
        assert printed.out == ""


def test_no_temporary_folder_is_something_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none() -> NoReturn:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)

    assert main(["verify", os.devnull]) == 6
    assert "set TMPDIR" in capsys.readouterr().err


def interrupted_block(steps: list[str]) -> None:
    with stoppable():
        with uninterrupted():
            interrupt()
            steps.append("inside")
        steps.append("after")


def test_a_stop_waits_for_the_end_of_the_block() -> None:
    """And does not get lost."""
    steps: list[str] = []
    with pytest.raises(StoppedError):
        interrupted_block(steps)

    assert steps == ["inside"]


def test_both_stops_are_told_apart_after_the_block() -> None:
    with pytest.raises(TerminatedError), stoppable(), uninterrupted():
        terminate()


def test_other_threads_hold_nothing_back() -> None:
    def work() -> bool:
        with uninterrupted():
            return True

    with ThreadPoolExecutor() as pool:
        assert pool.submit(work).result()


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)]
    with stoppable(), uninterrupted():
        pass

    assert [signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)] == before
