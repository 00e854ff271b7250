"""Who can read a file on Windows, from its security descriptor in text form.

Source: "Security Descriptor String Format", "ACE Strings" and "SID Strings" of Win32.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

_OTHERS = {
    "WD": "Everyone",
    "AN": "Anonymous",
    "AU": "Authenticated Users",
    "IU": "Interactive",
    "NU": "Network",
    "BU": "Users",
    "BG": "Guests",
    "DU": "Domain Users",
    "DG": "Domain Guests",
}
_READING_WORDS = {"FA", "FR", "GA", "GR", "CC"}
_READING_BITS = 0x1 | 0x80000000 | 0x10000000
"""FILE_READ_DATA, GENERIC_READ and GENERIC_ALL."""
_LIST = re.compile(r"D:([A-Z_]*)(.*?)(?:(?<=\))S:.*)?", re.DOTALL)
_ENTRY = re.compile(r"\((X?A);([^;]*);([^;]*);[^;]*;[^;]*;([^;)]*)")
"""An entry that allows, with or without a condition; conditions are taken to hold."""
_FILE, _DACL_INFORMATION, _REVISION = 1, 4, 1


def others_who_can_read(descriptor: str) -> tuple[str, ...]:
    """Name the groups of other people that a security descriptor lets read.

    Entries that deny are not weighed against it: a key file needs none.

    Args:
        descriptor: in SDDL; without a list of rights, everybody can do everything.
    """
    found = re.search(r"D:.*", descriptor, re.DOTALL)
    parts = _LIST.fullmatch(found[0]) if found else None
    if parts is None or "NO_ACCESS_CONTROL" in parts[1]:
        return (_OTHERS["WD"],)
    return tuple(
        dict.fromkeys(
            _OTHERS[who]
            for _, flags, rights, who in _ENTRY.findall(parts[2])
            if who in _OTHERS and "IO" not in _pairs(flags) and _reads(rights)
        )
    )


def rights_command(path: Path) -> str:
    """Give the command that leaves a file to its owner alone, for cmd and PowerShell."""
    others = "*S-1-1-0 *S-1-5-7 *S-1-5-11 *S-1-5-4 *S-1-5-2 *S-1-5-32-545 *S-1-5-32-546"
    return f'icacls "{path}" /inheritance:r /remove {others} /grant:r "*S-1-3-4:F"'


def file_descriptor(path: Path) -> str:
    """Read a file's security descriptor; on Windows only.

    Raises:
        OSError: it cannot be read.
    """
    if sys.platform == "win32":
        return _read_descriptor(path)
    else:  # noqa: RET505 - a type checker follows platforms by branches only
        message = f"{path} has no security descriptor here"
        raise OSError(message)


if sys.platform == "win32":

    def _read_descriptor(path: Path) -> str:
        security = ctypes.WinDLL("advapi32", use_last_error=True)
        memory = ctypes.WinDLL("kernel32")
        memory.LocalFree.argtypes = [ctypes.c_void_p]
        descriptor, text = ctypes.c_void_p(), ctypes.c_wchar_p()
        error = security.GetNamedSecurityInfoW(
            ctypes.c_wchar_p(str(path)), _FILE, _DACL_INFORMATION, None, None, None, None,
            ctypes.byref(descriptor),
        )  # fmt: skip
        if error:
            raise ctypes.WinError(error)
        try:
            if not security.ConvertSecurityDescriptorToStringSecurityDescriptorW(
                descriptor, _REVISION, _DACL_INFORMATION, ctypes.byref(text), None
            ):
                raise ctypes.WinError(ctypes.get_last_error())
            found = text.value or ""
            memory.LocalFree(ctypes.cast(text, ctypes.c_void_p))
        finally:
            memory.LocalFree(descriptor)
        return found


def _reads(rights: str) -> bool:
    if rights.startswith("0x"):
        return bool(int(rights, 16) & _READING_BITS)
    return not _READING_WORDS.isdisjoint(_pairs(rights))


def _pairs(text: str) -> list[str]:
    return [text[start : start + 2] for start in range(0, len(text), 2)]
