"""Files that appear in a folder together: all of them whole, or none of them.

The disk is the slowest part of a large copy, so it is kept busy from the first megabytes
on: files are flushed to it while they grow, and again at the end while others are still
being written.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from bundler.reproducible import FILE_MODE, OutputFile, refusing_to_write

_FLUSHED_EVERY = 256 * 1024 * 1024


@dataclass
class _Unfinished:
    """A file under another name, and what the disk was asked to do for it."""

    partial: Path
    final: Path
    flushes: list[Future[None]] = field(default_factory=list)


class Outputs:
    """A folder whose new files appear when the block ends well.

    Args:
        folder: where they appear.
        scratch: a folder on the same disk for what is unfinished.
        count: told of the bytes that were read for them, from several threads.
    """

    def __init__(
        self, folder: Path, scratch: Path, count: Callable[[int], None] = lambda _size: None
    ) -> None:
        self.folder = folder
        self.count = count
        self._scratch = scratch
        self._files: list[_Unfinished] = []
        self._open = ExitStack()
        self._disk = ThreadPoolExecutor(2, thread_name_prefix="disk")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._appear()
        finally:
            self._disk.shutdown(cancel_futures=True)
            with suppress(OSError):
                self._open.close()
            for file in self._files:
                with suppress(OSError):
                    file.partial.unlink(missing_ok=True)

    @contextmanager
    def open(self, name: str) -> Iterator[OutputFile]:
        """Write a new file.

        Args:
            name: posix path below the folder.

        Raises:
            RefusedError: the disk is full or the folder not writable.
        """
        final = self.folder / name
        with refusing_to_write(final):
            descriptor, partial = tempfile.mkstemp(prefix=".", suffix=".part", dir=self._scratch)
            stream: BinaryIO = self._open.enter_context(os.fdopen(descriptor, "w+b"))
            file = _Unfinished(Path(partial), final)
            self._files.append(file)
            output = OutputFile(stream, _FLUSHED_EVERY, lambda: self._flush(file, descriptor))
            yield output
            stream.flush()
            file.flushes.append(self._disk.submit(os.fsync, descriptor))
            output.finish()

    def adopt(self, name: str, source: Path) -> None:
        """Take over a file that another program wrote, on the same disk.

        Args:
            name: posix path below the folder.
            source: the file, which goes from there.
        """
        self._files.append(_Unfinished(source, self.folder / name))

    def _flush(self, file: _Unfinished, descriptor: int) -> None:
        if all(flush.done() for flush in file.flushes):
            file.flushes.append(self._disk.submit(os.fsync, descriptor))

    def _appear(self) -> None:
        for file in self._files:
            with refusing_to_write(file.final):
                for flush in file.flushes:
                    flush.result()
        # Windows renames no open file.
        self._open.close()
        for file in self._files:
            with refusing_to_write(file.final):
                file.final.parent.mkdir(parents=True, exist_ok=True)
                # mkstemp's 0600 would keep a package from being served.
                file.partial.chmod(FILE_MODE)
                file.partial.replace(file.final)
