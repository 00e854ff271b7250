"""The Linux loader: `dlopen` by full path, and the kernel's list of what is mapped.

A library that is loaded answers to its SONAME afterwards, so that siblings opened by bare
name are found wherever they are. cuDNN 8's `cnn_infer` has to be loaded beforehand: its
initialiser looks for an unversioned `libcuda.so`, and the main library takes that failure
for its own.

Source: ld.so(8), proc_pid_maps(5).
"""

from __future__ import annotations

import ctypes
import os
import platform
import re

from ._loader import Cookie, Library

# Address, permissions, offset, device, inode; then the path, which may hold spaces.
_MAPPED_FILE = re.compile(r"^(?:\S+\s+){5}(/.*)$")


class LinuxLoader:
    """The loader of this process."""

    def __init__(self) -> None:
        # The objects of ctypes never unload what they opened; they are kept by handle.
        self._opened: dict[int, ctypes.CDLL] = {}

    def modules(self) -> list[str]:
        """List every mapped file, by address."""
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            found = (_MAPPED_FILE.search(line) for line in maps)
            return list(dict.fromkeys(match[1] for match in found if match))

    def module_path(self, name: str) -> str | None:
        """Find the module whose file has this name, or this name and further numbers.

        A link `libcudnn.so.8` is mapped under the name of the file that it points to.
        """
        for path in self.modules():
            base = os.path.basename(path)
            if base == name or (".so" in name and base.startswith(name + ".")):
                return path
        return None

    def open(self, path: str) -> Library:
        """Load a library; see `Loader.open`."""
        before = set(self.modules())
        library = ctypes.CDLL(path)
        handle = library._handle  # noqa: SLF001 - ctypes has no other name for it
        self._opened[handle] = library
        found = path if os.path.isabs(path) else self.module_path(path)
        if found is None:
            new = [each for each in self.modules() if each not in before]
            found = new[0] if new else path
        return Library(found, handle)

    def release(self, library: Library) -> None:
        """Forget a library; `dlclose` is never called, as code of it may be running."""
        self._opened.pop(library.handle, None)

    def add_folder(self, folder: str) -> Cookie | None:
        """Do nothing: Linux has no such list, and loaded libraries answer to their names."""
        del folder
        return None

    def file_version(self, path: str) -> str | None:
        """Give nothing: ELF files have no version resource."""
        del path
        return None

    def system_folders(self) -> list[str]:
        """List `LD_LIBRARY_PATH` and the standard folders."""
        machine = platform.machine()
        chosen = os.environ.get("LD_LIBRARY_PATH", "").split(":")
        standard = [f"/usr/lib/{machine}-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"]
        return [folder for folder in chosen if os.path.isabs(folder)] + standard

    def opens_bare_names(self) -> bool:
        """Say yes: only the system's own cache knows all of its folders."""
        return True
