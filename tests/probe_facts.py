"""Reading what probes reported out of a smoke report."""

from __future__ import annotations

import json
from typing import Any

from bundler.smoke.report import ArtifactReport, report_bytes


def stage_facts(report: ArtifactReport, stage: str) -> list[dict[str, Any]]:
    """Give the facts of one stage, once for each way in which the artifact was loaded."""
    (artifact,) = json.loads(report_bytes([report]))["artifacts"]
    (load,) = (level for level in artifact["levels"] if level["level"] == "load")
    return [
        found["facts"]
        for document in load["facts"].values()
        for found in document["stages"]
        if found["stage"] == stage
    ]
