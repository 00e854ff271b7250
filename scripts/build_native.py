"""Build every native file of this project, or prove that the committed ones are these sources.

Needs only the pinned compiler from PyPI (`pip install ziglang==0.17.1`). One table says
what is built; the outputs are the same bytes in any folder at any time, so `--check`
compares whole files. Prebuilt files lie next to their sources and are committed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILER_VERSION = "0.17.1"
COMMON_FLAGS = ("-Os", "-s", "-g0", "-std=c23", "-mcpu=baseline", "-Wall", "-Wextra", "-Werror")
LIBC_FREE = ("-nostdlib", "-ffreestanding", "-fno-stack-protector")
DLL = (*LIBC_FREE, "-shared", "-Wl,-e,DllMain")
EXE = (*LIBC_FREE, "-Wl,-e,start", "-Wl,--subsystem,console", "-lkernel32")


@dataclass(frozen=True)
class Target:
    """One file to build.

    Args:
        output: posix path from the project's root.
        triple: the compiler's name of the target machine.
        sources: posix paths from the project's root.
        flags: what this one adds to the common flags.
        links: outputs built earlier whose import libraries are linked.
        import_library: posix path for the import library, or empty to drop it.
    """

    output: str
    triple: str
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    import_library: str = field(default="")


def _cudnn8(version: str) -> list[Target]:
    folder = "tests/fixtures/cudnn8"
    numbers = tuple(f"-DV{at}={part}" for at, part in enumerate(version.split("."), start=1))
    imports = {
        "ops_infer": (),
        "ops_train": ("ops_infer",),
        "cnn_infer": ("ops_infer",),
        "cnn_train": ("ops_infer", "ops_train", "cnn_infer"),
        "adv_infer": ("ops_infer",),
        "adv_train": ("ops_infer", "ops_train", "adv_infer"),
    }
    library = {name: f"{folder}/{version}/lib/cudnn_{name}64_8.lib" for name in imports}
    shim = Target(
        f"{folder}/{version}/cudnn64_8.dll",
        "x86_64-windows-gnu",
        (f"{folder}/shim.c",),
        (*DLL, *numbers, "-lkernel32"),
        import_library=f"{folder}/{version}/lib/cudnn64_8.lib",
    )
    subs = [
        Target(
            f"{folder}/{version}/cudnn_{name}64_8.dll",
            "x86_64-windows-gnu",
            (f"{folder}/sub.c",),
            (*DLL, *numbers, f"-DSUB={name.upper()}", "-lkernel32"),
            links=tuple(library[sibling] for sibling in siblings),
            import_library=library[name],
        )
        for name, siblings in imports.items()
    ]
    return [shim, *subs]


def _cudnn9() -> list[Target]:
    folder = "tests/fixtures/cudnn9"
    parts = {"libcudnn": ("MAIN", ()), "libcudnn_graph": ("GRAPH", ()),
             "libcudnn_ops": ("OPS", ("libcudnn_graph",))}  # fmt: skip
    return [
        Target(
            f"{folder}/{name}.so.9",
            "x86_64-linux-gnu.2.17",
            (f"{folder}/part.c",),
            (
                *(*LIBC_FREE, "-shared", "-fPIC", f"-DPART={part}", "-Wl,--build-id=sha1"),
                *(f"-Wl,-soname,{name}.so.9", "-Wl,-rpath,$ORIGIN"),
                f"-Wl,--version-script,{folder}/{name}.map",
            ),
            links=tuple(f"{folder}/{other}.so.9" for other in links),
        )
        for name, (part, links) in parts.items()
    ]


PROBE = tuple(
    f"bundler/probe/{chapter}.c"
    for chapter in (
        *("benchmark", "compatibility", "convolution", "cudnn_api", "driver", "engines"),
        *("gpu", "library", "needs", "plain_kernel", "problem", "report", "stages", "text"),
        "versions",
    )
)
PROGRAM = (*PROBE, "bundler/probe/cudnn_check.c", "bundler/probe/deaths.c")
LIBRARY = (*PROBE, "bundler/probe/shared_library.c")
# What lies beside the program is found before what the system has installed, as by a program
# that ships its libraries; LD_LIBRARY_PATH comes before both.
ORIGIN = ("-ldl", "-Wl,-rpath,$ORIGIN")
# The oldest C library that a manylinux2014 system has; nothing newer is asked for.
LINUX = {"linux-x86_64": "x86_64-linux-gnu.2.17", "linux-aarch64": "aarch64-linux-gnu.2.17"}
TARGETS = [
    *_cudnn8("8.9.5.29"),
    *_cudnn8("8.5.0.96"),
    *_cudnn9(),
    *(
        Target(
            f"tests/fixtures/machines/{machine}.dll",
            triple,
            ("tests/fixtures/machines/machine.c",),
            DLL,
        )
        for machine, triple in (("x86", "x86-windows-gnu"), ("arm64", "aarch64-windows-gnu"))
    ),
    Target(
        "tests/fixtures/machines/x86.so",
        "x86-linux-gnu",
        ("tests/fixtures/machines/machine.c",),
        (*LIBC_FREE, "-shared", "-fPIC", "-D__declspec(_)="),
    ),
    Target(
        "tests/fixtures/loader/harness.exe",
        "x86_64-windows-gnu",
        ("tests/fixtures/loader/harness.c",),
        EXE,
    ),
    Target(
        "tests/fixtures/loader/sleeper.dll",
        "x86_64-windows-gnu",
        ("tests/fixtures/loader/sleeper.c",),
        (*DLL, "-lkernel32"),
    ),
    Target(
        "bundler/probe/prebuilt/windows-x86_64/decoy.dll",
        "x86_64-windows-gnu",
        ("bundler/probe/decoy.c",),
        DLL,
    ),
    Target(
        "bundler/probe/prebuilt/windows-x86_64/cudnn-check.exe",
        "x86_64-windows-gnu",
        (*PROGRAM, "bundler/probe/platform_windows.c", "bundler/probe/start_windows.c"),
        EXE,
    ),
    *(
        Target(
            f"bundler/probe/prebuilt/{platform}/cudnn-check",
            triple,
            (*PROGRAM, "bundler/probe/platform_linux.c", "bundler/probe/start_linux.c"),
            ORIGIN,
        )
        for platform, triple in LINUX.items()
    ),
    Target(
        "bundler/probe/prebuilt/windows-x86_64/cudnn-check.dll",
        "x86_64-windows-gnu",
        (*LIBRARY, "bundler/probe/platform_windows.c"),
        (*DLL, "-lkernel32"),
    ),
    *(
        Target(
            f"bundler/probe/prebuilt/{platform}/cudnn-check.so",
            triple,
            (*LIBRARY, "bundler/probe/platform_linux.c"),
            ("-shared", "-fPIC", "-fvisibility=hidden", "-ldl"),
        )
        for platform, triple in LINUX.items()
    ),
    *(
        Target(
            f"bundler/probe/prebuilt/{platform}/decoy.so",
            triple,
            ("bundler/probe/decoy.c",),
            (*LIBC_FREE, "-shared", "-fPIC"),
        )
        for platform, triple in LINUX.items()
    ),
]


def build(target: Target, folder: Path, cache: Path) -> list[str]:
    """Build one target below a folder and name what it made.

    Args:
        target: what to build.
        folder: gets the outputs at the same relative paths as in the project.
        cache: where the compiler may keep its intermediate files.

    Raises:
        subprocess.CalledProcessError: the compiler refused.
    """
    output = folder / target.output
    output.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target.triple, *COMMON_FLAGS]
    command += [*target.sources, *(str(folder / name) for name in target.links)]
    command += [*target.flags, "-o", str(output)]
    environment = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(cache)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    # The linker names the import library after the first source, not after the output.
    side_product = output.parent / f"{Path(target.sources[0]).stem}.lib"
    if not target.import_library:
        side_product.unlink(missing_ok=True)
        return [target.output]
    kept = folder / target.import_library
    kept.parent.mkdir(parents=True, exist_ok=True)
    side_product.replace(kept)
    return [target.output, target.import_library]


def main(arguments: list[str]) -> int:
    """Build into a folder, or compare a fresh build with what is committed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT, help="default: in place")
    parser.add_argument("--check", action="store_true", help="compare with the committed files")
    options = parser.parse_args(arguments)
    found = metadata.version("ziglang")
    if found != COMPILER_VERSION:
        sys.stderr.write(f"ziglang {found} is installed; pip install ziglang=={COMPILER_VERSION}\n")
        return 6
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "out" if options.check else options.folder.resolve()
        made = [n for target in TARGETS for n in build(target, folder, Path(scratch) / "cache")]
        committed = {n: (ROOT / n).read_bytes() if (ROOT / n).is_file() else None for n in made}
        differing = [n for n in made if (folder / n).read_bytes() != committed[n]]
    for name in differing if options.check else ():
        sys.stderr.write(f"differs from a fresh build: {name}\n")
    return 1 if options.check and differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
