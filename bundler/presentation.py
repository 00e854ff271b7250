"""Results in words, and as JSON documents, for the command line to print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bundler.artifacts import Artifact
from bundler.errors import BundlerError
from bundler.lock import Lock, Role
from bundler.pipeline import BuildResult
from bundler.provenance_check import SubjectCheck
from bundler.rebuilding import Rebuilt
from bundler.smoke.report import ArtifactReport, report_document

_MEBIBYTE = 1024 * 1024


def build_lines(result: BuildResult) -> Iterator[str]:
    """Summarise a build: each artifact with size, hash and smoke result."""
    yield f"{result.lock.identity}"
    yield from (f"  {line}" for line in _witness_lines(result.lock))
    reports = {report.file: report for report in result.reports}
    for artifact in result.artifacts:
        yield ""
        yield from _artifact_lines(artifact, reports.get(artifact.path.name))
    yield ""
    yield from _target_lines(result.lock)
    yield from _remark_lines((*result.lock.warnings, *result.notes))
    yield "beside them: " + ", ".join(path.name for path in result.side_files)


def _witness_lines(lock: Lock) -> Iterator[str]:
    yield f"archive SHA-256 {lock.archive.sha256}"
    for witness in lock.archive.witnesses:
        yield f"vouched for by {witness.kind}: {witness.detail}"


def _artifact_lines(artifact: Artifact, report: ArtifactReport | None) -> Iterator[str]:
    yield f"{artifact.kind}: {artifact.path}"
    yield f"  size    {artifact.size} bytes ({artifact.size / _MEBIBYTE:.1f} MiB)"
    yield f"  SHA-256 {artifact.sha256}"
    yield f"  smoke   {report.summary if report else 'not tested'}"


def _target_lines(lock: Lock) -> Iterator[str]:
    yield "the target machine must have:"
    yield from (f"  {line}" for line in lock.target_requirements)


def _remark_lines(remarks: Sequence[str]) -> Iterator[str]:
    for remark in remarks:
        yield f"note: {remark}"


def smoke_lines(reports: Sequence[ArtifactReport]) -> Iterator[str]:
    """Summarise smoke tests, a line for each artifact."""
    for report in reports:
        yield f"{report.file} on {report.host}"
        yield f"  {report.summary}"


def lock_lines(lock: Lock, notes: Sequence[str] = ()) -> Iterator[str]:
    """Show what a release is: identity, files by role, libraries, needs."""
    yield str(lock.identity)
    yield from (f"  {line}" for line in _witness_lines(lock))
    for role in Role:
        files = [file for file in lock.files if file.role is role]
        if files:
            yield f"  {len(files)} {role} files, {sum(file.size for file in files)} bytes"
    yield "libraries, in load order:"
    by_name = {file.name: file for file in lock.runtime_files}
    for name in lock.load_order:
        file = by_name[name]
        facts = file.library
        version = (facts and facts.file_version) or "no version resource"
        signed = facts.signer.in_words if facts and facts.signer else "not signed"
        yield f"  {name:<42} {file.size:>12} {version:<10} {signed}"
    yield from _target_lines(lock)
    yield from _remark_lines((*lock.warnings, *notes))


def signature_lines(checked: SubjectCheck) -> Iterator[str]:
    """Say who signed, and for which of the files at hand."""
    yield f"signed by key {checked.provenance.key_id}"
    yield from (f"  as signed: {path}" for path in checked.present)
    yield from (f"  not here: {name}" for name in checked.absent)


def signature_document(checked: SubjectCheck) -> dict[str, object]:
    """Give a checked signature as JSON."""
    return {
        "provenance": str(checked.provenance.path),
        "key_id": checked.provenance.key_id,
        "subjects": dict(checked.provenance.subjects),
        "present": [str(path) for path in checked.present],
        "absent": list(checked.absent),
    }


def rebuilt_lines(found: Rebuilt) -> Iterator[str]:
    """Say that an artifact was made again with the same bytes."""
    yield f"rebuilt: {found.artifact.path.name}"
    yield f"  the same {found.artifact.size} bytes, SHA-256 {found.artifact.sha256}"
    yield f"  from the archive with SHA-256 {found.recorded.archive_sha256}"
    for name, there in sorted(found.recorded.versions.items()):
        yield f"  made by {name} {there}"


def rebuilt_document(found: Rebuilt) -> dict[str, object]:
    """Give a rebuilt artifact as one JSON document."""
    return {
        "rebuilt": artifact_document(found.artifact),
        "archive_sha256": found.recorded.archive_sha256,
        "versions": dict(found.recorded.versions),
    }


def build_document(result: BuildResult) -> dict[str, object]:
    """Give a build as one JSON document."""
    return {
        "identity": {
            "version": str(result.lock.identity.version),
            "cuda": result.lock.identity.cuda,
            "platform": str(result.lock.identity.platform),
        },
        "artifacts": [artifact_document(artifact) for artifact in result.artifacts],
        "smoke": report_document(result.reports),
        "side_files": [str(path) for path in result.side_files],
        "warnings": list(result.lock.warnings),
        "notes": list(result.notes),
        "closed": result.lock.closed,
    }


def artifact_document(artifact: Artifact) -> dict[str, object]:
    """Give an artifact as JSON."""
    return {**vars(artifact), "path": str(artifact.path)}


def error_document(error: BundlerError) -> dict[str, object]:
    """Give an error as JSON."""
    return {
        "error": type(error).__name__,
        "exit_code": error.exit_code,
        "what": error.what,
        "why": error.why,
        "next": error.next_step,
        "faults": [vars(fault) for fault in error.faults],
    }
