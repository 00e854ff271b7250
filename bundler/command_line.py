"""The grammar of the command line: words in, typed options out. Nothing is done here."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from bundler import __version__, argument_types
from bundler.artifacts import ArtifactKind, ArtifactOptions, CondaEngine, CudaSource
from bundler.errors import UsageError
from bundler.provenance import BUILDER

_EPILOG = """\
exit codes:
  0 done   1 a bug in this tool   2 wrong usage
  3 the archive or manifest is not what it claims
  4 the release is not fit to ship   5 a smoke test failed
  6 something needed is missing here   7 the destination refuses
  130 stopped by Ctrl-C   143 stopped by SIGTERM
"""
_EXAMPLES = {
    "build": """\
examples:
  cudnn-bundler build cudnn-windows-x86_64-8.9.7.29_cuda11-archive.zip -o dist
  cudnn-bundler build archive.zip --manifest redistrib_8.9.7.29.json --only wheel --no-smoke
  cudnn-bundler build archive.zip --sign key.pem
""",
    "verify": """\
examples:
  cudnn-bundler verify cudnn-windows-x86_64-8.9.7.29_cuda11-archive.zip
  cudnn-bundler verify archive.zip --manifest redistrib_8.9.7.29.json
  cudnn-bundler verify dist/cudnn_runtime_cu11-8.9.7.29-py3-none-win_amd64.whl
  cudnn-bundler verify dist/win-64/*.conda --rebuild archive.zip
  cudnn-bundler verify .venv --lock cudnn-8.9.7.29-cuda11-windows-x86_64.lock.json
  cudnn-bundler verify dist/cudnn_runtime_cu11-8.9.7.29-py3-none-win_amd64.whl --key public.pem
""",
    "inspect": """\
examples:
  cudnn-bundler inspect cudnn-windows-x86_64-8.9.7.29_cuda11-archive.zip
  cudnn-bundler inspect dist/cudnn_runtime_cu11-8.9.7.29-py3-none-win_amd64.whl --json
""",
    "smoke": """\
examples:
  cudnn-bundler smoke dist/*-applocal.zip
  cudnn-bundler smoke dist/*.whl dist/win-64/*.conda --require-gpu
  cudnn-bundler smoke dist/*.whl dist/*.zip dist/win-64/*.conda --report dist/smoke-report.json
""",
}


@dataclass(frozen=True)
class Arguments:
    """What the user asked for; fields of other verbs keep their defaults.

    Args:
        verb: which command.
        paths: archives or artifacts.
        as_json: one JSON document on standard output.
        output: folder for artifacts.
        kinds: which artifacts.
        manifest: a witness.
        sha256: a witness, hex.
        lock: what an artifact or installation must equal, instead of the lock it carries.
        options: what may differ between builds of one archive.
        smoke: test what was built.
        require_gpu: a missing GPU is a failure.
        cache: reuse and keep finished builds.
        report: where to write the smoke report.
        sign: file of the private key to sign the provenance with.
        passphrase: file that holds the private key's passphrase.
        builder: URI of whoever answers for the build.
        key: file of the public key that must have signed.
        provenance: the signed envelope, where it does not lie beside the artifact.
        rebuild: the archive to make an artifact again from.
        require_signature: libraries without a signature are a failure.
    """

    verb: str
    paths: tuple[Path, ...]
    as_json: bool
    output: Path = Path("dist")
    kinds: tuple[ArtifactKind, ...] = tuple(ArtifactKind)
    manifest: Path | None = None
    sha256: str | None = None
    lock: Path | None = None
    options: ArtifactOptions = field(default_factory=ArtifactOptions)
    smoke: bool = True
    require_gpu: bool = False
    cache: bool = True
    report: Path | None = None
    sign: Path | None = None
    passphrase: Path | None = None
    builder: str = BUILDER
    key: Path | None = None
    provenance: Path | None = None
    rebuild: Path | None = None
    require_signature: bool = False


def parse(argv: Sequence[str]) -> Arguments:
    """Read the command line; `--help` and `--version` end the process.

    Raises:
        UsageError: it makes no sense.
    """
    parser = _parser()
    found = parser.parse_args(argv)
    if found.passphrase is not None and found.sign is None:
        parser.error("--passphrase-file goes with --sign KEY")
    if found.provenance is not None and found.key is None and found.rebuild is None:
        parser.error("--provenance goes with --key PUBLIC or --rebuild ARCHIVE")
    return Arguments(
        verb=found.verb,
        paths=tuple(found.path) if isinstance(found.path, list) else (found.path,),
        as_json=found.json,
        output=found.output,
        kinds=tuple(dict.fromkeys(found.only or ArtifactKind)),
        manifest=found.manifest,
        sha256=found.sha256,
        lock=found.lock,
        options=ArtifactOptions(found.cuda_from, found.conda_level, found.conda_engine),
        smoke=found.smoke,
        require_gpu=found.require_gpu,
        cache=found.cache,
        report=found.report,
        sign=found.sign,
        passphrase=found.passphrase,
        builder=found.builder,
        key=found.key,
        provenance=found.provenance,
        rebuild=found.rebuild,
        require_signature=found.require_signature,
    )


def wants_json(argv: Sequence[str]) -> bool:
    """Say whether a command line, sound or not, asks for JSON."""
    return any(len(word) > 2 and "--json".startswith(word) for word in argv)


class _Parser(argparse.ArgumentParser):
    """Raises what the standard library prints, so that `main` can say it in JSON too."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, next_step=f"see `{self.prog} --help`")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="cudnn-bundler",
        description="Turn NVIDIA's cuDNN archive into an app-local bundle, a wheel and a conda "
        "package, each proven to load.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # For the verbs that lack the option.
    parser.set_defaults(
        output=Path("dist"), only=None, manifest=None, sha256=None, lock=None,
        smoke=True, require_gpu=False, require_signature=False, cache=True, report=None,
        sign=None, passphrase=None, builder=BUILDER, key=None, provenance=None, rebuild=None,
        **vars(ArtifactOptions()),
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"cudnn-bundler {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_build(verbs)
    verify = _verb(verbs, "verify", "check an archive, an artifact or what was installed")
    verify.add_argument("path", type=argument_types.path, metavar="PATH")
    _add_witnesses(verify)
    _add_require_signature(verify)
    verify.add_argument(
        "--lock",
        type=argument_types.path,
        metavar="FILE",
        help="the lock to compare with, instead of the one that is carried",
    )
    verify.add_argument(
        "--key", type=argument_types.path, metavar="PUBLIC",
        help="the ed25519 public key (PEM) that must have signed the provenance of an artifact",
    )  # fmt: skip
    verify.add_argument(
        "--provenance", type=argument_types.path, metavar="FILE",
        help="how it was made: signed for --key (default: *.provenance.dsse.json beside it), "
        "plain for --rebuild (default: *.provenance.json)",
    )  # fmt: skip
    verify.add_argument(
        "--rebuild", type=argument_types.path, metavar="ARCHIVE",
        help="make the artifact again from NVIDIA's archive and compare all bytes",
    )  # fmt: skip
    inspect = _verb(verbs, "inspect", "show what an archive or artifact is and what it needs")
    inspect.add_argument("path", type=argument_types.path, metavar="PATH")
    _add_witnesses(inspect)
    smoke = _verb(verbs, "smoke", "install artifacts in clean environments, load and compute")
    smoke.add_argument("path", type=argument_types.path, nargs="+", metavar="ARTIFACT")
    smoke.add_argument("--require-gpu", action="store_true", help="no GPU is a failure (exit 6)")
    smoke.add_argument(
        "--report", type=argument_types.path, metavar="FILE",
        help="write the smoke report to FILE, also when a test fails (default: write nothing, so "
        "that the smoke-report.json of build stays as it is)",
    )  # fmt: skip
    return parser


def _verb(
    verbs: argparse._SubParsersAction[_Parser], name: str, help_text: str
) -> argparse.ArgumentParser:
    verb = verbs.add_parser(
        name,
        help=help_text,
        description=help_text.capitalize() + ".",
        epilog=_EXAMPLES[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--json", action="store_true", help="one JSON document on standard output")
    return verb


def _add_build(verbs: argparse._SubParsersAction[_Parser]) -> None:
    build = _verb(verbs, "build", "the main job: validate an archive, write and test artifacts")
    build.add_argument(
        "path", type=argument_types.path, metavar="ARCHIVE", help="NVIDIA's cuDNN archive (.zip)"
    )
    build.add_argument(
        "-o",
        "--output",
        type=argument_types.path,
        default=Path("dist"),
        metavar="DIR",
        help="default: dist",
    )
    build.add_argument(
        "--only", type=ArtifactKind, action="append", choices=list(ArtifactKind),
        help="write this artifact only; may be repeated",
    )  # fmt: skip
    _add_witnesses(build)
    _add_require_signature(build)
    build.add_argument(
        "--cuda-from", type=CudaSource, choices=list(CudaSource), default=CudaSource.NONE,
        help="pypi: the wheel depends on NVIDIA's wheels of cuBLAS and NVRTC (default: none)",
    )  # fmt: skip
    build.add_argument(
        "--conda-level", type=argument_types.level, default=3, metavar="N",
        help="zstd level of the conda package, 1 to 22 (default: 3)",
    )  # fmt: skip
    build.add_argument(
        "--conda-engine", type=CondaEngine, choices=list(CondaEngine), default=CondaEngine.NATIVE,
        help="who writes the conda package; only native is reproducible (default)",
    )  # fmt: skip
    build.add_argument(
        "--no-cache", dest="cache", action="store_false",
        help="neither take finished artifacts from the cache nor keep them there",
    )  # fmt: skip
    build.add_argument(
        "--no-smoke", dest="smoke", action="store_false", help="do not test what was built"
    )
    _add_signing(build)


def _add_signing(build: argparse.ArgumentParser) -> None:
    build.add_argument(
        "--sign", type=argument_types.path, metavar="KEY",
        help="sign the provenance with this ed25519 private key (PEM), which only you may read",
    )  # fmt: skip
    build.add_argument(
        "--passphrase-file", dest="passphrase", type=argument_types.path, metavar="FILE",
        help="holds the passphrase of an encrypted KEY; a terminal is asked without it",
    )  # fmt: skip
    build.add_argument(
        "--builder-id", dest="builder", type=argument_types.uri, default=BUILDER, metavar="URI",
        help=f"who answers for the build, in the provenance (default: {BUILDER})",
    )  # fmt: skip


def _add_witnesses(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--manifest", type=argument_types.path, metavar="FILE",
        help="NVIDIA's redistrib_*.json that lists the archive, as a witness for its hash",
    )  # fmt: skip
    verb.add_argument("--sha256", metavar="HASH", help="the archive's SHA-256, as a witness")


def _add_require_signature(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--require-signature", action="store_true",
        help="libraries without any Authenticode signature are a fault (exit 4), not a note",
    )  # fmt: skip
