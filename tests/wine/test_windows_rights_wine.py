"""Rights of a real file, read by a Windows Python."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.wine.windows import Interpreter

ROOT = Path(__file__).parents[2]
CODE = """
import sys
from pathlib import Path
from bundler.windows_rights import file_descriptor, others_who_can_read
descriptor = file_descriptor(Path({path!r}))
print(descriptor, file=sys.stderr)
print(others_who_can_read(descriptor))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="modes are translated to rights by Wine only")
@pytest.mark.parametrize(
    ("mode", "expected"), [(0o600, "()"), (0o644, "('Everyone',)")], ids=["owner", "everybody"]
)
def test_rights_follow_the_file(
    interpreter: Interpreter, tmp_path: Path, mode: int, expected: str
) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(b"")
    path.chmod(mode)

    run = interpreter.code(CODE.format(path=interpreter.host.path_argument(path)), sites=[ROOT])

    assert run.exit_code == 0, run.stderr
    assert run.stdout.strip() == expected, run.stderr
