"""A process that is ready to examine signatures before the last library is unpacked.

Half of what it takes is starting Python and importing signify; done beside the unpacking,
that costs nobody any time.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from bundler.authenticode import Examined
from bundler.authenticode.child import PROGRAM, examine, search_path


class WaitingExaminer:
    """Examines signatures once; whoever meets the first one starts the process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            with self._process as process:
                process.kill()

    def start(self) -> None:
        """Start the process, from any thread; only the first call does."""
        with self._lock:
            if self._process is None:
                pipe = subprocess.PIPE
                self._process = subprocess.Popen(  # noqa: S603 - this very Python
                    PROGRAM, stdin=pipe, stdout=pipe, stderr=pipe
                )
                # One that ended at once says why with its exit code.
                if self._process.stdin is not None:
                    with suppress(OSError):
                        self._process.stdin.write(search_path())
                        self._process.stdin.flush()

    def __call__(self, signatures: Sequence[bytes], roots: bytes | None) -> list[Examined]:
        """Examine, as `child.examine` does."""
        return examine(signatures, roots, self._run)

    def _run(
        self, words: Sequence[str], request: bytes, seconds: float
    ) -> subprocess.CompletedProcess[bytes]:
        self.start()
        if self._process is None:
            raise RuntimeError(words)
        try:
            output, error = self._process.communicate(request, timeout=seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise
        return subprocess.CompletedProcess(words, self._process.returncode, output, error)
