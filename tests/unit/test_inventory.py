"""What each file of an archive is for."""

from __future__ import annotations

import pytest

from bundler.errors import Fault
from bundler.inventory import (
    CUDNN_LIBRARY,
    MAIN_LIBRARY,
    common_root,
    inventory_faults,
    role_of,
)
from bundler.lock import Role

FIT = ["bin/cudnn64_8.dll", "bin/cudnn_ops_infer64_8.dll", "LICENSE"]


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("bin/cudnn64_8.dll", Role.RUNTIME),
        ("bin/x64/CUDNN64_9.DLL", Role.RUNTIME),
        ("bin/zlibwapi.dll", Role.RUNTIME),
        ("lib/x64/cudnn.lib", Role.IMPORT_LIBRARY),
        ("lib/cudnn64_8.lib", Role.IMPORT_LIBRARY),
        ("include/cudnn.h", Role.HEADER),
        ("LICENSE", Role.LICENCE),
        ("License.txt", Role.LICENCE),
        ("LICENCE", Role.LICENCE),
        ("EULA.pdf", Role.LICENCE),
        ("NVIDIA_SLA_cuDNN_Support.txt", Role.LICENCE),
        ("third_party/LICENSE", Role.OTHER),
        ("licensed.py", Role.OTHER),
        ("bin/cudnn.exe", Role.OTHER),
        ("dll", Role.OTHER),
    ],
)
def test_roles(path: str, role: Role) -> None:
    assert role_of(path) is role


@pytest.mark.parametrize(
    ("paths", "root"),
    [
        (["cuda/bin/a.dll", "cuda/LICENSE"], "cuda/"),
        (["archive/bin/a.dll", "archive/LICENSE"], "archive/"),
        (["bin/a.dll", "LICENSE"], ""),
        (["bin/a.dll", "bin/b.dll"], ""),
        (["lib64/a.so"], ""),
        (["a/b.dll", "c/d.dll"], ""),
        (["a", "a.dll"], ""),
        ([], ""),
    ],
)
def test_the_common_root(paths: list[str], root: str) -> None:
    assert common_root(paths) == root


def faults_of(paths: list[str]) -> list[Fault]:
    return inventory_faults([(path, role_of(path)) for path in paths])


def test_a_fit_set_has_no_faults() -> None:
    assert faults_of(FIT) == []


@pytest.mark.parametrize(
    ("paths", "what"),
    [
        ([], "holds no library (.dll) at all"),
        (["LICENSE", "include/cudnn.h"], "holds no library"),
        (FIT[1:], "holds no main library"),
        ([*FIT, "bin/cudnn64_9.dll"], "cudnn64_8.dll, cudnn64_9.dll"),
        (FIT[:2], "holds no licence text"),
        ([*FIT, "lib/CUDNN64_8.dll"], "second library of this name"),
        ([*FIT, 'bin/"a".dll'], "packages cannot carry"),
        ([*FIT, "bin/a b.dll"], "packages cannot carry"),
        ([*FIT, "bin/-a.dll"], "packages cannot carry"),
    ],
)
def test_what_keeps_a_set_from_being_shipped(paths: list[str], what: str) -> None:
    assert any(what in str(fault) for fault in faults_of(paths))


@pytest.mark.parametrize(
    ("name", "is_cudnn", "is_main"),
    [
        ("cudnn64_8.dll", True, True),
        ("CUDNN64_9.DLL", True, True),
        ("cudnn64_10.dll", True, True),
        ("cudnn_engines_runtime_compiled64_9.dll", True, False),
        ("cudnn.dll", False, False),
        ("mycudnn64_8.dll", False, False),
        ("cudnn64_8.dll.bak", False, False),
    ],
)
def test_names_of_libraries(name: str, is_cudnn: bool, is_main: bool) -> None:
    assert bool(CUDNN_LIBRARY.fullmatch(name)) is is_cudnn
    assert bool(MAIN_LIBRARY.fullmatch(name)) is is_main
