"""The Wine host and the Windows Python, for real."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from bundler.errors import SmokeError
from bundler.smoke.windows_python import install_wheel, make_windows_venv
from tests.wine.windows import Interpreter, cudnn_folder

if TYPE_CHECKING:
    from pathlib import Path

    from bundler.smoke.host import Host

WHEEL = "sample_of_ours-1.0-py3-none-any.whl"


def make_wheel(folder: Path) -> Path:
    """Make a wheel of one module."""
    info = "sample_of_ours-1.0.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("sample_of_ours.py", "VALUE = 7\n")
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: sample-of-ours\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return folder / WHEEL


def test_a_wheel_is_installed_into_an_environment_without_pip(
    windows_host: Host, windows_python: Path, tmp_path: Path
) -> None:
    program = make_windows_venv(windows_host, windows_python, tmp_path / "br [x] é中")
    install_wheel(windows_host, windows_python, program, make_wheel(tmp_path))

    code = "import json, sample_of_ours as s, sys; print(json.dumps([s.VALUE, sys.prefix]))"
    value, prefix = Interpreter(windows_host, program).answer(code)

    assert value == 7
    assert prefix == windows_host.path_argument(tmp_path / "br [x] é中")


def test_a_wheel_for_another_platform_is_refused(
    windows_host: Host, windows_python: Path, tmp_path: Path
) -> None:
    program = make_windows_venv(windows_host, windows_python, tmp_path / "v")
    wheel = make_wheel(tmp_path).rename(tmp_path / WHEEL.replace("none-any", "none-win_arm64"))

    with pytest.raises(SmokeError, match="not a supported wheel"):
        install_wheel(windows_host, windows_python, program, wheel)


def test_the_callers_environment_does_not_leak(interpreter: Interpreter) -> None:
    answer = interpreter.answer("import json, os; print(json.dumps(dict(os.environ)))")

    names = {name.upper() for name in answer}
    assert not {name for name in names if name.startswith(("CUDA_PATH", "PYTHON", "PIP_"))}
    assert cudnn_folder("").name not in answer["PATH"]


def test_exit_codes_and_working_folder_arrive(interpreter: Interpreter, tmp_path: Path) -> None:
    run = interpreter.run("-c", "import os, sys; print(os.getcwd()); sys.exit(7)", cwd=tmp_path)

    assert run.exit_code == 7
    assert run.stdout.strip() == interpreter.host.path_argument(tmp_path)


def test_search_path_puts_folders_first(interpreter: Interpreter, tmp_path: Path) -> None:
    folders = [tmp_path / "a é", tmp_path / "b"]
    entries = interpreter.host.search_path(folders)

    path = interpreter.answer(
        "import json, os; print(json.dumps(os.environ['PATH']))", environment=entries
    )

    assert path.split(";")[:2] == [interpreter.host.path_argument(each) for each in folders]
    assert json.dumps(path)
