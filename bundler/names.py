"""The grammar of names: NVIDIA's archives on the way in, our artifacts on the way out.

NVIDIA has named its archives in two ways (a third of the known ones the old way), and
its download site and browsers rename them further. Everything here is pure: a name in,
a record out, and back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Platform(StrEnum):
    """A target platform, spelt as NVIDIA's manifests spell it."""

    WINDOWS_X86_64 = "windows-x86_64"
    WINDOWS_ARM64 = "windows-arm64"
    LINUX_X86_64 = "linux-x86_64"
    LINUX_SBSA = "linux-sbsa"
    LINUX_AARCH64 = "linux-aarch64"
    LINUX_PPC64LE = "linux-ppc64le"
    OSX_X86_64 = "osx-x86_64"

    @property
    def is_windows(self) -> bool:
        """Say whether the payload is PE files."""
        return self.value.startswith("windows-")

    @property
    def wheel_tag(self) -> str:
        """The platform tag of a wheel, without a manylinux level for Linux."""
        return {"windows-x86_64": "win_amd64", "windows-arm64": "win_arm64"}.get(
            self.value, self.value.replace("-", "_").replace("sbsa", "aarch64")
        )

    @property
    def conda_subdir(self) -> str:
        """The folder of a conda channel that holds packages of this platform."""
        return {
            "windows-x86_64": "win-64",
            "windows-arm64": "win-arm64",
            "linux-x86_64": "linux-64",
            "linux-sbsa": "linux-aarch64",
            "osx-x86_64": "osx-64",
        }.get(self.value, self.value)


@dataclass(frozen=True, order=True)
class Version:
    """A cuDNN version of one to four numbers, ordered as numbers.

    Args:
        parts: the numbers, most significant first.
    """

    parts: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read `8.9.5.29`.

        Raises:
            ValueError: the text is not one to four dotted numbers.
        """
        if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}", text):
            message = f"not a version of one to four numbers: {text!r}"
            raise ValueError(message)
        return cls(tuple(int(part) for part in text.split(".")))

    @property
    def major(self) -> int:
        """The first number: cuDNN's ABI generation."""
        return self.parts[0]

    @property
    def api_number(self) -> int:
        """What `cudnnGetVersion` answers: 8905 up to cuDNN 8, 90101 from 9 on.

        Source: `CUDNN_VERSION` in `cudnn_version.h`.
        """
        major, minor, patch = (*self.parts, 0, 0, 0)[:3]
        return major * (1000 if major < 9 else 10000) + minor * 100 + patch

    def agrees_with(self, other: Version) -> bool:
        """Say whether the shorter of the two is a prefix of the longer."""
        shared = min(len(self.parts), len(other.parts))
        return self.parts[:shared] == other.parts[:shared]

    def __str__(self) -> str:
        return ".".join(str(part) for part in self.parts)


@dataclass(frozen=True)
class ReleaseIdentity:
    """Which cuDNN it is: version, CUDA and platform.

    Args:
        version: four numbers where they are known, three at least.
        cuda: the CUDA label of the artifacts: `11`, or `10.1` for toolkits before
            CUDA 11, whose minor versions do not share an ABI.
        platform: the target.
    """

    version: Version
    cuda: str
    platform: Platform

    @property
    def cuda_major(self) -> int:
        """The CUDA major version."""
        return int(self.cuda.split(".", maxsplit=1)[0])

    @property
    def stem(self) -> str:
        """`cudnn-8.9.5.29-cuda11-windows-x86_64`, what file names begin with."""
        return f"cudnn-{self.version}-cuda{self.cuda}-{self.platform}"

    @property
    def distribution(self) -> str:
        """The wheel's distribution name, `cudnn-runtime-cu11`."""
        return f"cudnn-runtime-cu{self.cuda.replace('.', '')}"

    @property
    def import_name(self) -> str:
        """The wheel's import package, `cudnn_runtime_cu11`."""
        return self.distribution.replace("-", "_")

    @property
    def archive_name(self) -> str:
        """The name that NVIDIA's newer grammar gives such an archive."""
        suffix = "zip" if self.platform.is_windows else "tar.xz"
        return f"cudnn-{self.platform}-{self.version}_cuda{self.cuda}-archive.{suffix}"

    def __str__(self) -> str:
        return f"cuDNN {self.version} for CUDA {self.cuda} on {self.platform}"


def cuda_label(cuda: str) -> str:
    """Reduce a CUDA version to the label that names its ABI: `11.6` is `11`, `10.1` stays.

    From CUDA 11 on, NVIDIA's libraries are compatible across one major version.
    """
    major = cuda.split(".", maxsplit=1)[0]
    return major if int(major) >= 11 else cuda


@dataclass(frozen=True)
class ArchiveName:
    """What an archive's file name claims.

    Args:
        identity: the claim; its `cuda` is a label as in `ReleaseIdentity`.
        is_official: the spelling is one that NVIDIA publishes, not a renamed form.
    """

    identity: ReleaseIdentity
    is_official: bool


_VERSION = r"(?P<version>[0-9]{1,6}(?:\.[0-9]{1,6}){1,3})"
_CUDA = r"(?P<cuda>[0-9]{1,3}(?:\.[0-9]{1,3})?)"
_PLATFORM = r"(?P<platform>(?:windows|linux|osx)-?[a-z0-9]*(?:[-_][a-z0-9]+)*?)"
_GRAMMARS = tuple(
    re.compile(pattern + r"\.(?:zip|tar\.xz|tgz|tar\.gz)", re.IGNORECASE)
    for pattern in (
        rf"cudnn-{_PLATFORM}-{_VERSION}[_-]cuda{_CUDA}-archive",
        rf"cudnn-{_CUDA}-{_PLATFORM}-v{_VERSION}",
        rf"cudnn-v{_VERSION}[_-]cuda{_CUDA}-{_PLATFORM}",
    )
)
_COPY_MARKS = re.compile(r"^copy of |(?:[ _]?\(\d+\)| - copy(?: \(\d+\))?)(?=\.)", re.IGNORECASE)
_PLATFORM_SPELLINGS = {
    "windows10-x64": Platform.WINDOWS_X86_64,
    "windows7-x64": Platform.WINDOWS_X86_64,
    "windows-x64": Platform.WINDOWS_X86_64,
    "linux-x64": Platform.LINUX_X86_64,
    "linux-aarch64sbsa": Platform.LINUX_SBSA,
    "osx-x64": Platform.OSX_X86_64,
}


def parse_archive_name(file_name: str) -> ArchiveName | None:
    """Read what a file name claims, or nothing when it is not a cuDNN archive's name.

    Understands both of NVIDIA's grammars, the download site's renamed forms
    (`cudnn-windows-x86-64-8.5.0.96-cuda11-archive.zip`,
    `cudnn-v8.0.3.33_cuda10.1-windows10-x64.zip`) and a browser's ` (1)`.

    Args:
        file_name: the last component of a path.
    """
    plain = _COPY_MARKS.sub("", file_name)
    for number, grammar in enumerate(_GRAMMARS):
        match = grammar.fullmatch(plain)
        if match is None:
            continue
        platform = _parse_platform(match["platform"])
        if platform is None:
            return None
        identity = ReleaseIdentity(
            Version.parse(match["version"]), cuda_label(match["cuda"]), platform
        )
        official = number < 2 and plain == file_name and _is_official_spelling(plain)
        return ArchiveName(identity, official)
    return None


def _parse_platform(spelling: str) -> Platform | None:
    lower = spelling.lower()
    known = _PLATFORM_SPELLINGS.get(lower)
    if known is not None:
        return known
    try:
        return Platform(lower.replace("x86-64", "x86_64"))
    except ValueError:
        return None


def _is_official_spelling(name: str) -> bool:
    return "x86-64" not in name and "-cuda" not in name and name == name.lower()
