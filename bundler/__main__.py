"""The command line: parse, call one library function, print its result."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from getpass import getpass
from pathlib import Path

from bundler import pipeline, presentation
from bundler.artifacts.reading import kind_of, open_artifact, read_artifact_lock, recognise
from bundler.attestation import ENVELOPE, Attestor
from bundler.build_cache import BuildCache
from bundler.command_line import Arguments, parse, wants_json
from bundler.errors import (
    BundlerError,
    MissingError,
    RefusedError,
    UsageError,
)
from bundler.ingest import IngestOptions, ingest, inspect_archive
from bundler.lock import Lock
from bundler.moment import VARIABLE, moment_of
from bundler.progress import Progress, show_progress
from bundler.provenance_check import (
    SignatureOptions,
    SubjectCheck,
    can_be_signed_for,
    check_envelope,
    check_signed_file,
)
from bundler.rebuilding import RebuildOptions, rebuild
from bundler.shortages import shortage
from bundler.signature_policy import SignaturePolicy, unsigned_error
from bundler.signing_keys import KeySource, read_private_key
from bundler.smoke.report import report_document
from bundler.smoke.verdict import smoke_verdict
from bundler.smoke.wine import cache_folder
from bundler.stopping import stoppable
from bundler.verification.presentation import (
    verification_document,
    verification_lines,
)
from bundler.verification.recognition import artifact_kind, is_folder
from bundler.verification.verdict import verdict

_CACHE_VARIABLE = "CUDNN_BUNDLER_CACHE"


@dataclass(frozen=True)
class Outcome:
    """What a verb came to.

    Args:
        document: the result for `--json`.
        lines: the result for people.
        error: a verdict that goes beyond the result, such as a failed smoke test.
    """

    document: object
    lines: Iterable[str]
    error: BundlerError | None = None


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and give its exit code."""
    words = sys.argv[1:] if argv is None else argv
    # A file's name may hold what the encoding of the output lacks.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with stoppable():
            arguments = parse(words)
            with show_progress(sys.stderr) as progress:
                outcome = VERBS[arguments.verb](arguments, progress)
    except BundlerError as error:
        outcome = Outcome(presentation.error_document(error), (), error)
    except Exception as error:  # noqa: BLE001 - the last resort: exit code 1 means a bug
        failure = shortage(error) or _bug()
        outcome = Outcome(presentation.error_document(failure), (), failure)
    return _tell(outcome, as_json=wants_json(words))


def _bug() -> BundlerError:
    traceback.print_exc()
    return BundlerError("this is a bug in cudnn-bundler", next_step="report the lines above")


def _tell(outcome: Outcome, *, as_json: bool) -> int:
    code = 0 if outcome.error is None else outcome.error.exit_code
    try:
        if as_json:
            print(json.dumps(outcome.document, indent=1, sort_keys=True))
        else:
            sys.stdout.writelines(f"{line}\n" for line in outcome.lines)
        sys.stdout.flush()
    except OSError as failure:
        # Python would flush again at the end, and fail again.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
        # A reader such as `head` may have enough; any other failure loses the result.
        if not isinstance(failure, BrokenPipeError):
            print(f"error: cannot write to standard output: {failure.strerror}", file=sys.stderr)
            code = code or RefusedError.exit_code
    if outcome.error is not None:
        print(f"error: {outcome.error}", file=sys.stderr)
    return code


def _build(arguments: Arguments, progress: Progress) -> Outcome:
    options = pipeline.BuildOptions(
        ingest=_ingest_options(arguments, arguments.output),
        output=arguments.output,
        kinds=arguments.kinds,
        artifacts=replace(arguments.options, moment=moment_of(os.environ.get(VARIABLE))),
        smoke=arguments.smoke,
        cache=BuildCache(_build_cache_folder()) if arguments.cache else None,
        attestor=_attestor(arguments),
    )
    result = pipeline.build(options, os.environ, progress)
    document, lines = presentation.build_document(result), presentation.build_lines(result)
    return Outcome(document, lines, smoke_verdict(result.reports, require_gpu=False))


def _build_cache_folder() -> Path:
    """Let a user choose the disk: only on that of the outputs can the cache share their bytes."""
    chosen = os.environ.get(_CACHE_VARIABLE)
    return Path(chosen) if chosen else cache_folder() / "builds"


def _attestor(arguments: Arguments) -> Attestor:
    """Read the key first of all, so that a wrong one costs nobody a minute of work."""
    if arguments.sign is None:
        return Attestor(arguments.builder)
    ask = (lambda: getpass(f"passphrase of {arguments.sign}: ")) if sys.stdin.isatty() else None
    source = KeySource(arguments.sign, arguments.passphrase, ask)
    return Attestor(arguments.builder, read_private_key(source))


def _verify(arguments: Arguments, progress: Progress) -> Outcome:
    path = arguments.paths[0]
    if arguments.rebuild is not None:
        return _verify_by_rebuilding(arguments, arguments.rebuild, progress)
    is_ours = is_folder(path) or artifact_kind(path) is not None
    if arguments.key is not None:
        options = SignatureOptions(arguments.key, arguments.provenance)
        return _verify_signed(arguments, options, progress, is_artifact=is_ours)
    if is_ours:
        return _verify_by_lock(arguments, progress)
    with ingest(_ingest_options(arguments, _scratch()), progress) as release:
        return _lock_outcome(f"verified: {path.name}", release.lock, release.notes)


def _verify_signed(
    arguments: Arguments, options: SignatureOptions, progress: Progress, *, is_artifact: bool
) -> Outcome:
    path = arguments.paths[0]
    if not is_artifact:
        return _verify_side_file(path, options)
    signed = check_signed_file(path, options)
    found = _verify_by_lock(arguments, progress)
    note = f"signed for in {signed.path.name} by key {signed.key_id}"
    return replace(found, lines=[*found.lines, f"  {note}"])


def _verify_by_rebuilding(arguments: Arguments, archive: Path, progress: Progress) -> Outcome:
    ingest_options = replace(_ingest_options(arguments, _scratch()), archive=archive)
    options = RebuildOptions(arguments.paths[0], ingest_options, arguments.provenance)
    found = rebuild(options, progress)
    return Outcome(presentation.rebuilt_document(found), presentation.rebuilt_lines(found))


def _verify_side_file(path: Path, options: SignatureOptions) -> Outcome:
    if path.name.endswith(ENVELOPE):
        if options.provenance is not None:
            raise UsageError(
                f"{path.name} is a provenance itself", next_step="leave out --provenance"
            )
        checked = check_envelope(path, options.key)
    elif can_be_signed_for(path):
        checked = SubjectCheck(check_signed_file(path, options), (path,), ())
    else:
        raise UsageError(
            f"{path} is not something that `build --sign` signs for",
            next_step="leave out --key to check an archive; give it with an artifact, or with "
            "the lock, SBOM or provenance beside one",
        )
    return Outcome(presentation.signature_document(checked), presentation.signature_lines(checked))


def _verify_by_lock(arguments: Arguments, progress: Progress) -> Outcome:
    if arguments.manifest or arguments.sha256:
        raise UsageError(
            "--manifest and --sha256 vouch for an archive, and this is none",
            next_step="give --lock FILE to compare with a lock that you trust",
        )
    progress(f"comparing {arguments.paths[0]}")
    found = pipeline.verify(arguments.paths[0], arguments.lock)
    error = verdict(found)
    if error is None and arguments.require_signature:
        error = unsigned_error(item.lock for item in found if item.lock is not None)
    return Outcome(verification_document(found), verification_lines(found), error)


def _inspect(arguments: Arguments, progress: Progress) -> Outcome:
    path = arguments.paths[0]
    if kind_of(path) is not None:
        return _lock_outcome(path.name, read_artifact_lock(recognise(path), path))
    found = inspect_archive(_ingest_options(arguments, _scratch()), progress)
    return _lock_outcome(path.name, found.lock, found.notes)


def _lock_outcome(title: str, lock: Lock, notes: Sequence[str] = ()) -> Outcome:
    document = {**json.loads(lock.to_bytes()), "notes": list(notes)}
    return Outcome(document, [title, *presentation.lock_lines(lock, notes)])


def _smoke(arguments: Arguments, progress: Progress) -> Outcome:
    artifacts = tuple(open_artifact(path) for path in arguments.paths)
    options = pipeline.SmokeOptions(_scratch(), report=arguments.report)
    reports = pipeline.smoke(artifacts, options, os.environ, progress)
    error = smoke_verdict(reports, require_gpu=arguments.require_gpu)
    return Outcome(report_document(reports), presentation.smoke_lines(reports), error)


VERBS: dict[str, Callable[[Arguments, Progress], Outcome]] = {
    "build": _build,
    "verify": _verify,
    "inspect": _inspect,
    "smoke": _smoke,
}


def _ingest_options(arguments: Arguments, scratch: Path) -> IngestOptions:
    return IngestOptions(
        arguments.paths[0],
        arguments.manifest,
        arguments.sha256,
        scratch,
        SignaturePolicy(required=arguments.require_signature),
    )


def _scratch() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise MissingError(
            "there is no folder for temporary files",
            why=error.strerror or "",
            next_step="set TMPDIR to a folder that can be written to",
        ) from error


if __name__ == "__main__":
    sys.exit(main())
