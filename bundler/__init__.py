"""One ingest of NVIDIA's cuDNN archive, three artifacts, one proof.

The flow, and the modules that own its steps:

    archive  ->  manifest  ->  release  ->  artifacts  ->  smoke
    (read)      (expected)    (validated)  (written)      (proven)

`pipeline` is the table of contents: one function per verb of the command line.
"""

from __future__ import annotations

__version__ = "0.1.0"
