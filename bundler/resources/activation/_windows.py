"""The Windows loader, through the wide-character functions only.

Why everything is loaded by full path, with these flags: cuDNN opens its own parts by bare
name, which searches the program's folder, System32, the current folder and PATH, never
the folder of the library that asks, nor one given to AddDllDirectory. But a bare name is
first compared with the modules that are already loaded, so loading them beforehand is
what works, in every process mode.

Source: "Dynamic-link library search order" and LoadLibraryExW in the Win32 documentation.
"""

from __future__ import annotations

import ctypes
import os
import sys

from ._loader import Cookie, Library

# LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS
_OWN_FOLDER_THEN_DEFAULT = 0x00000100 | 0x00001000
_LONGEST_PATH = 32768
_MEANINGS = {
    126: "it, or a library that it links to, was not found",
    127: "a library that it links to lacks a function: another version of it is loaded",
    193: "it is damaged, or built for another processor",
    206: "the path is too long: install into a shorter one or enable long paths",
    1114: "its initialisation failed: an old processor, C++ run-time or a security program",
    1455: "Windows is out of memory to commit: enlarge the paging file or start fewer processes",
}

if sys.platform == "win32":
    from ctypes import wintypes

    def _kernel32() -> ctypes.WinDLL:
        # An instance of our own: argument types set on a shared one would reach others.
        library = ctypes.WinDLL("kernel32", use_last_error=True)
        handle, path = wintypes.HMODULE, wintypes.LPCWSTR
        library.GetModuleHandleW.argtypes = (path,)
        library.GetModuleHandleW.restype = handle
        library.GetModuleFileNameW.argtypes = (handle, wintypes.LPWSTR, wintypes.DWORD)
        library.LoadLibraryExW.argtypes = (path, wintypes.HANDLE, wintypes.DWORD)
        library.LoadLibraryExW.restype = handle
        library.FreeLibrary.argtypes = (handle,)
        library.GetCurrentProcess.restype = wintypes.HANDLE
        library.K32EnumProcessModules.argtypes = (
            wintypes.HANDLE,
            ctypes.POINTER(handle),
            wintypes.DWORD,
            ctypes.POINTER(wintypes.DWORD),
        )
        return library

    class WindowsLoader:
        """The loader of this process."""

        def __init__(self) -> None:
            self._kernel32 = _kernel32()

        def modules(self) -> list[str]:
            """List every module, the program first and then by loading."""
            room = 256
            while True:
                handles = (wintypes.HMODULE * room)()
                needed = wintypes.DWORD()
                self._kernel32.K32EnumProcessModules(
                    self._kernel32.GetCurrentProcess(),
                    handles,
                    ctypes.sizeof(handles),
                    ctypes.byref(needed),
                )
                count = needed.value // ctypes.sizeof(wintypes.HMODULE)
                if count <= room:
                    return [self._path(each) for each in handles[:count] if each]
                room = count + 64

        def module_path(self, name: str) -> str | None:
            """Ask for the module that a bare name means."""
            handle = self._kernel32.GetModuleHandleW(name)
            return self._path(handle) if handle else None

        def open(self, path: str) -> Library:
            """Load a library; see `Loader.open`."""
            handle = self._kernel32.LoadLibraryExW(path, None, _OWN_FOLDER_THEN_DEFAULT)
            if not handle:
                code = ctypes.get_last_error()
                meaning = _MEANINGS.get(code, ctypes.FormatError(code).strip())
                message = f"{path}: {meaning} (Windows error {code})"
                raise OSError(code, message)
            return Library(self._path(handle), handle)

        def release(self, library: Library) -> None:
            """Give one reference back."""
            self._kernel32.FreeLibrary(library.handle)

        def add_folder(self, folder: str) -> Cookie | None:
            """Register the folder for what extension modules link to."""
            return os.add_dll_directory(folder)

        def file_version(self, path: str) -> str | None:
            """Read FILEVERSION of the version resource."""
            return _file_version(path)

        def system_folders(self) -> list[str]:
            """List System32 and what PATH holds; relative entries would mean anything."""
            system = os.path.join(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32")
            entries = os.environ.get("PATH", "").split(os.pathsep)
            return [system] + [entry for entry in entries if os.path.isabs(entry)]

        def opens_bare_names(self) -> bool:
            """Say no: a full path found on PATH is opened instead, which pins it."""
            return False

        def _path(self, handle: int) -> str:
            buffer = ctypes.create_unicode_buffer(_LONGEST_PATH)
            length = self._kernel32.GetModuleFileNameW(handle, buffer, _LONGEST_PATH)
            path = buffer.value if length else ""
            return path[4 * path.startswith("\\\\?\\") :]

    def _file_version(path: str) -> str | None:
        version = ctypes.WinDLL("version")
        size = version.GetFileVersionInfoSizeW(ctypes.c_wchar_p(path), None)
        if not size:
            return None
        data = ctypes.create_string_buffer(size)
        if not version.GetFileVersionInfoW(ctypes.c_wchar_p(path), 0, size, data):
            return None
        # VS_FIXEDFILEINFO: signature, structure version, then FILEVERSION as two numbers.
        fixed = ctypes.POINTER(wintypes.DWORD)()
        length = wintypes.UINT()
        root = ctypes.c_wchar_p("\\")
        if not version.VerQueryValueW(data, root, ctypes.byref(fixed), ctypes.byref(length)):
            return None
        high, low = fixed[2], fixed[3]
        return f"{high >> 16}.{high & 0xFFFF}.{low >> 16}.{low & 0xFFFF}"
