"""Telling what a file is by its first bytes, for messages that help."""

from __future__ import annotations

from bundler.errors import ArchiveError, MissingError

_FORMATS = (
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "an empty zip"),
    (b"PK\x07\x08", "one part of a zip split over several files"),
    (b"PK00PK\x03\x04", "one part of a zip split over several files"),
    (b"\xfd7zXZ\x00", "a tar.xz, NVIDIA's format for Linux"),
    (b"\x1f\x8b", "a gzip file (tgz), NVIDIA's older format for Linux"),
    (b"MZ", "a Windows program, perhaps an installer"),
    (b"Rar!", "a RAR file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip file"),
    (b"\x7fELF", "a Linux program"),
    (b"version https://git-lfs", "a Git LFS pointer, which stands in for a file"),
)
_WEB_PAGE = "a web page"
_MARKUP = (b"<!doctype", b"<html", b"<head", b"<?xml", b"<!--")


def check_format(name: str, head: bytes, size: int) -> None:
    """Make sure that a file begins like a zip.

    Args:
        name: of the file, for messages.
        head: its first kilobyte.
        size: bytes, for messages.

    Raises:
        MissingError: it is one of NVIDIA's Linux archives.
        ArchiveError: it is anything else; says what it looks like.
    """
    kind = _format_of(head)
    if kind == "zip":
        return
    if kind.startswith(("a tar.xz", "a gzip")):
        raise MissingError(
            f"{name} is {kind}, whatever its name says",
            why="this version reads NVIDIA's Windows archives (.zip)",
            next_step="use the windows-x86_64 archive of the same release",
        )
    next_step = "fetch the archive again; a cuDNN archive is hundreds of megabytes"
    if kind == _WEB_PAGE:
        next_step = (
            "NVIDIA's download needs a login or another address: open the page, log in, retry"
        )
    raise ArchiveError(
        f"{name} is {kind}, not a cuDNN archive ({size:,} bytes)", next_step=next_step
    )


def _format_of(head: bytes) -> str:
    if not head:
        return "empty"
    for magic, kind in _FORMATS:
        if head.startswith(magic):
            return kind
    if head[257:262] == b"ustar":
        return "a tar file"
    if not head.strip(b"\0"):
        return "filled with zeros, as an unfinished download may be"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith(_MARKUP):
        return _WEB_PAGE
    return "of no known format"
