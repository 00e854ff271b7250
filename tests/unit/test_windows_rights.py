"""Who else can read a file on Windows, told from its security descriptor."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bundler.windows_rights import file_descriptor, others_who_can_read, rights_command

CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "the owner's alone": ("D:PAI(A;;FA;;;OW)", ()),
    "administrators and the system": ("O:BAG:BAD:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)", ()),
    "one account by number": ("D:(A;;FA;;;S-1-5-21-1-2-3-1001)", ()),
    "everybody": ("D:(A;;FR;;;WD)", ("Everyone",)),
    "a folder's usual rights": (
        "D:AI(A;ID;FA;;;SY)(A;ID;0x1200a9;;;BU)(A;ID;0x1301bf;;;AU)",
        ("Users", "Authenticated Users"),
    ),
    "twice": ("D:(A;;FR;;;WD)(A;;FA;;;WD)", ("Everyone",)),
    "generic, by number": ("D:(A;;0x80000000;;;BU)", ("Users",)),
    "data and attributes only": ("D:(A;;CCRC;;;IU)", ("Interactive",)),
    "writing without reading": ("D:(A;;FW;;;WD)(A;;0x116;;;BU)", ()),
    "denied": ("D:(D;;FA;;;WD)(A;;FA;;;OW)", ()),
    "for children only": ("D:(A;OICIIO;FA;;;WD)", ()),
    "with a condition": (
        'D:(XA;;FR;;;WD;(@User.Title=="PM"))(A;;FR;;;NU)',
        ("Everyone", "Network"),
    ),
    "an empty list": ("D:P", ()),
    "no list": ("D:NO_ACCESS_CONTROL", ("Everyone",)),
    "nothing at all": ("", ("Everyone",)),
    "rights of the audit": ("D:(A;;FA;;;OW)S:(AU;SAFA;FR;;;WD)", ()),
}


@pytest.mark.parametrize(("descriptor", "expected"), CASES.values(), ids=CASES.keys())
def test_others_who_can_read(descriptor: str, expected: tuple[str, ...]) -> None:
    assert others_who_can_read(descriptor) == expected


def test_the_command_suits_both_shells() -> None:
    command = rights_command(Path("my key.pem"))

    assert command.startswith('icacls "my key.pem" /inheritance:r ')
    assert "%" not in command
    assert "$" not in command


@pytest.mark.skipif(sys.platform == "win32", reason="there it has one")
def test_there_is_no_descriptor_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no security descriptor"):
        file_descriptor(tmp_path)
