"""Activation against the loader's documented rules, played in memory."""

from __future__ import annotations

import itertools
import os
import threading
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.activation_package import SWITCH, LibraryFile, MemoryLoader, Modules, base_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IMPORTS = {
    "cudnn_ops_infer64_8.dll": (),
    "cudnn_cnn_infer64_8.dll": ("cudnn_ops_infer64_8.dll",),
    "cudnn_ops_train64_8.dll": ("cudnn_ops_infer64_8.dll",),
    "cudnn64_8.dll": (),
}
NAMES = tuple(IMPORTS)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    """Import the package once."""
    return Modules(tmp_path_factory.mktemp("site"))


@dataclass
class Scene:
    """A process with a package in it.

    Args:
        modules: the package's code.
        loader: of the process.
        root: a folder for everything.
        environment: of the process.
    """

    modules: Modules
    loader: MemoryLoader
    root: Path
    environment: dict[str, str]
    order: tuple[str, ...] = NAMES
    needs: tuple[Any, ...] = ()
    cuda: str = "11"

    @property
    def package_folder(self) -> Path:
        return self.root / "site [x]; é" / "cudnn_runtime_cu11"

    @property
    def library_folder(self) -> str:
        return str(self.package_folder / "bin")

    def put(self, path: str | Path, **facts: Any) -> str:  # noqa: ANN401 - of `LibraryFile`
        """Put a file on the disk and into the loader's knowledge."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
        self.loader.files[str(path)] = LibraryFile(**facts)
        return str(path)

    def put_set(self, folder: str | Path, version: str) -> None:
        """Put a whole cuDNN into a folder."""
        for name, imports in IMPORTS.items():
            self.put(f"{folder}/{name}", imports=imports, version=version)

    def need(self, name: str, kind: str = "required") -> None:
        """Let the lock say that a library is needed."""
        need = self.modules.lock.Need(name, ("cudnn64_8.dll",), kind, "it is used", "a-wheel")
        self.needs = (*self.needs, need)

    def activator(self) -> Any:  # noqa: ANN401 - a type of the laid-out package
        """Make the activator of this package."""
        lock = self.modules.lock.Lock(
            "8.9.5.29", self.cuda, "windows-x86_64", (), self.order, self.needs
        )
        surroundings = self.modules.needs.Surroundings(
            str(self.package_folder),
            (str(self.package_folder.parent), "", str(self.root / "other site")),
            str(self.root / "prefix"),
            self.environment,
        )
        package = self.modules.activation.Package(
            "cudnn_runtime_cu11", str(self.package_folder), lock, surroundings
        )
        return self.modules.activation.Activator(package, lambda: self.loader)


@pytest.fixture
def scene(modules: Modules, tmp_path: Path) -> Scene:
    """Give a process that holds nothing yet, and a whole package."""
    scene = Scene(modules, MemoryLoader(library_type=modules.loader.Library), tmp_path, {})
    scene.put_set(scene.library_folder, "8.9.5.29")
    return scene


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)), ids=" ".join)
def test_every_library_comes_from_the_package_in_any_order(
    scene: Scene, order: tuple[str, ...]
) -> None:
    scene.order = order

    activation = scene.activator().activate()

    assert {name: f"{scene.library_folder}/{name}" for name in NAMES} == activation.modules
    assert sorted(activation.modules.values()) == sorted(scene.loader.loaded)


def test_another_copy_on_path_or_beside_the_program_is_not_used(scene: Scene) -> None:
    scene.put_set(scene.root / "p", "8.5.0.96")
    scene.loader.program_folder = str(scene.root / "p")
    scene.loader.path = [str(scene.root / "p")]

    activation = scene.activator().activate()

    assert all(path.startswith(scene.library_folder) for path in scene.loader.loaded)
    assert set(NAMES) == set(activation.modules)


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_foreign_library_is_a_conflict_that_says_which(scene: Scene, name: str) -> None:
    scene.put_set(scene.root / "old", "8.5.0.96")
    scene.loader.open(f"{scene.root}/old/{name}")
    before = list(scene.loader.loaded)

    with pytest.raises(scene.modules.errors.ConflictError) as caught:
        scene.activator().activate()

    assert f"{name} 8.5.0.96 from {scene.root}/old/{name}" in str(caught.value)
    assert f"{SWITCH}_CONFLICT=adopt" in caught.value.remedy
    assert issubclass(caught.type, ImportError)
    assert before == scene.loader.loaded
    assert scene.loader.added == []


def test_adopting_warns_and_loads_nothing_of_our_own(scene: Scene) -> None:
    scene.put_set(scene.root / "old", "8.5.0.96")
    foreign = f"{scene.root}/old/cudnn_ops_infer64_8.dll"
    scene.loader.open(foreign)
    scene.environment[f"{SWITCH}_CONFLICT"] = "Adopt"

    with pytest.warns(RuntimeWarning, match="adopted"):
        activation = scene.activator().activate()

    assert {"cudnn_ops_infer64_8.dll": foreign} == activation.adopted
    assert activation.modules == {}
    assert [foreign] == scene.loader.loaded


def test_all_missing_files_are_named(scene: Scene) -> None:
    for name in NAMES[1:3]:
        Path(scene.library_folder, name).unlink()

    with pytest.raises(scene.modules.errors.DamagedError, match="security program") as caught:
        scene.activator().activate()

    assert all(name in caught.value.what for name in NAMES[1:3])
    assert NAMES[0] not in caught.value.what


def test_a_library_that_does_not_load_undoes_everything(scene: Scene) -> None:
    scene.loader.files[f"{scene.library_folder}/{NAMES[1]}"].damaged = True

    with pytest.raises(scene.modules.errors.ActivationError, match="damaged"):
        scene.activator().activate()

    assert scene.loader.loaded == []
    assert scene.loader.added == []


def test_a_loader_that_uses_another_file_is_found_out(scene: Scene) -> None:
    stranger = scene.put(scene.root / "old" / NAMES[0], version="8.5.0.96")
    open_one = scene.loader.open

    def open_and_slip_in(path: str) -> Any:  # noqa: ANN401 - as `open`
        if path.endswith(NAMES[0]) and stranger not in scene.loader.loaded:
            scene.loader.loaded.insert(0, stranger)
        return open_one(path)

    scene.loader.open = open_and_slip_in  # type: ignore[method-assign]

    with pytest.raises(scene.modules.errors.ConflictError, match=r"8\.dll is .*old"):
        scene.activator().activate()

    assert [stranger] == scene.loader.loaded


def test_activation_happens_once_whichever_thread_asks(scene: Scene) -> None:
    activator, seen = scene.activator(), []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        seen.append(activator.activate())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(seen) == 8
    assert all(each is seen[0] for each in seen)
    assert {1} == set(scene.loader.holds.values())


def test_deactivation_gives_back_and_can_be_followed_by_activation(scene: Scene) -> None:
    activator = scene.activator()
    activator.activate()
    assert [scene.library_folder] == scene.loader.added

    activator.deactivate()
    activator.deactivate()

    assert scene.loader.loaded == []
    assert scene.loader.added == []
    assert set(NAMES) == set(activator.activate().modules)


def test_a_forked_child_does_not_wait_for_a_thread_it_lacks(scene: Scene) -> None:
    activator = scene.activator()
    holder = threading.Thread(target=activator._mutex.acquire)
    holder.start()
    holder.join()

    activator.renew_mutex()
    child = threading.Thread(target=activator.activate, daemon=True)
    child.start()
    child.join(10)

    assert not child.is_alive()
    assert scene.loader.loaded


@pytest.mark.parametrize(
    ("value", "off"),
    [
        pytest.param("off", True, id="off"),
        pytest.param(" OFF ", True, id="capitals and blanks"),
        pytest.param("0", True, id="zero"),
        pytest.param("false", True, id="false"),
        pytest.param("no", True, id="no"),
        pytest.param("", False, id="empty"),
        pytest.param("on", False, id="on"),
        pytest.param("1", False, id="one"),
    ],
)
def test_switch(scene: Scene, value: str, off: bool) -> None:
    scene.environment[SWITCH] = value

    assert off == scene.activator()._package.is_off


PLACES: dict[str, Callable[[Scene], str]] = {
    "inside this package": lambda scene: f"{scene.library_folder}/cublas64_11.dll",
    "NVIDIA's wheels": lambda scene: (
        f"{scene.package_folder.parent}/nvidia/cublas/bin/cublas64_11.dll"
    ),
    "the conda environment": lambda scene: f"{scene.root}/prefix/Library/bin/cublas64_11.dll",
    "the CUDA toolkit": lambda scene: f"{scene.root}/cuda/bin/cublas64_11.dll",
    "the system": lambda scene: f"{scene.root}/on path/cublas64_11.dll",
}


def furnish(scene: Scene, origins: list[str]) -> None:
    """Put a cuBLAS into each of some places."""
    (scene.root / "prefix" / "conda-meta").mkdir(parents=True, exist_ok=True)
    scene.environment["CUDA_PATH"] = str(scene.root / "cuda")
    scene.loader.path = ["relative", str(scene.root / "on path")]
    scene.need("cublas64_11.dll")
    for origin in origins:
        scene.put(PLACES[origin](scene))


@pytest.mark.parametrize("position", range(len(PLACES)), ids=list(PLACES))
def test_the_nearest_place_wins(scene: Scene, position: int) -> None:
    origins = list(PLACES)[position:]
    furnish(scene, origins)

    (need,) = scene.activator().activate().needs

    assert origins[0] == need.origin
    assert PLACES[origins[0]](scene) == need.path
    assert scene.loader.loaded[0] == need.path


def test_what_is_loaded_already_is_taken(scene: Scene) -> None:
    furnish(scene, list(PLACES))
    elsewhere = scene.put(scene.root / "torch" / "cublas64_11.dll")
    scene.loader.open(elsewhere)

    (need,) = scene.activator().activate().needs

    assert ("already loaded", elsewhere) == (need.origin, need.path)


def test_a_damaged_candidate_is_told_and_the_next_place_is_tried(scene: Scene) -> None:
    furnish(scene, ["NVIDIA's wheels", "the CUDA toolkit"])
    scene.loader.files[PLACES["NVIDIA's wheels"](scene)].damaged = True

    (need,) = scene.activator().activate().needs

    assert need.origin == "the CUDA toolkit"
    assert "damaged" in need.failures[0]


def test_what_is_found_nowhere_is_recorded_and_importing_works(scene: Scene) -> None:
    scene.need("cublas64_11.dll")
    scene.need("zlibwapi.dll", "optional")
    scene.need("nvcuda.dll", "driver")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        activation = scene.activator().activate()

    assert [each.need.name for each in activation.needs] == ["cublas64_11.dll", "zlibwapi.dll"]
    assert [each.need.name for each in activation.missing] == ["cublas64_11.dll"]
    assert "install cublas64_11.dll (from a-wheel)" in activation.missing[0].remedy


def test_a_library_that_links_to_a_missing_need_does_not_break_the_import(scene: Scene) -> None:
    scene.need("cublas64_11.dll")
    scene.loader.files[f"{scene.library_folder}/{NAMES[0]}"].imports = ("cublas64_11.dll",)

    activation = scene.activator().activate()

    assert {"cudnn64_8.dll"} == set(activation.modules)
    assert "cublas64_11.dll not found" in activation.not_loaded[NAMES[0]]


def test_cublaslt_goes_before_cublas_and_nvrtc_brings_its_builtins(scene: Scene) -> None:
    nvidia = scene.root / "other site" / "nvidia"
    for name in ("nvrtc64_%d_0.dll", "cublas64_11.dll", "cublasLt64_11.dll"):
        scene.need(name)
    for path in (
        "cublas/bin/cublas64_11.dll",
        "cublas/bin/cublasLt64_11.dll",
        "cuda_nvrtc/bin/nvrtc64_112_0.dll",
        "cuda_nvrtc/bin/nvrtc64_120_0.dll",
        "cuda_nvrtc/bin/nvrtc-builtins64_118.dll",
    ):
        scene.put(nvidia / path)

    scene.activator().activate()

    assert [base_name(path) for path in scene.loader.loaded[:4]] == [
        "cublasLt64_11.dll",
        "cublas64_11.dll",
        "nvrtc64_112_0.dll",
        "nvrtc-builtins64_118.dll",
    ]


def test_cuda_13_wheels_have_a_folder_of_their_own(scene: Scene) -> None:
    scene.cuda = "13"
    scene.need("cublasLt64_13.dll")
    path = scene.put(scene.root / "other site/nvidia/cu13/bin/x86_64/cublasLt64_13.dll")

    (need,) = scene.activator().activate().needs

    assert path == need.path


@pytest.mark.parametrize(
    ("name", "cuda", "fits", "does_not_fit"),
    [
        pytest.param(
            "nvrtc64_%d_0.dll", "11", "nvrtc64_112_0.dll", "nvrtc64_120_0.dll", id="CUDA 11"
        ),
        pytest.param(
            "nvrtc64_%d_0.dll", "10.1", "NVRTC64_101_0.DLL", "nvrtc64_102_0.dll", id="CUDA 10.1"
        ),
        pytest.param("libnvrtc.so.%d.%d", "11", "libnvrtc.so.11.2", "libnvrtc.so.12.2", id="Linux"),
        pytest.param("cublas64_11.dll", "11", "cublas64_11.dll", "cublas64_11xdll", id="plain"),
    ],
)
def test_name_patterns(
    modules: Modules, name: str, cuda: str, fits: str, does_not_fit: str
) -> None:
    pattern = modules.needs.name_pattern(name, cuda)

    assert pattern.fullmatch(fits)
    assert not pattern.fullmatch(does_not_fit)


def test_nvrtc_is_loaded_after_cublas_with_its_builtins(scene: Scene) -> None:
    wheel = f"{scene.package_folder.parent}/nvidia/cuda_nvrtc/bin"
    for name in ("nvrtc64_%d_0.dll", "cublas64_11.dll", "cublasLt64_11.dll"):
        scene.need(name, "optional" if "nvrtc" in name else "required")
    furnish(scene, ["NVIDIA's wheels"])
    scene.put(f"{scene.package_folder.parent}/nvidia/cublas/bin/cublasLt64_11.dll")
    for name in ("nvrtc64_112_0.dll", "nvrtc-builtins64_118.dll", "nvrtc64_112_0.alt.dll"):
        scene.put(f"{wheel}/{name}")
    scene.put(f"{wheel}/nvrtc-builtins64_118.alt.dll")

    scene.activator().activate()

    assert [Path(path).name for path in scene.loader.loaded[:4]] == [
        "cublasLt64_11.dll",
        "cublas64_11.dll",
        "nvrtc64_112_0.dll",
        "nvrtc-builtins64_118.dll",
    ]


def test_wheels_of_one_library_come_before_the_wheel_of_all(scene: Scene) -> None:
    nvidia = scene.package_folder.parent / "nvidia"
    for folder in ("cu13/bin/x86_64", "cublas/bin", "cuda_nvrtc/bin"):
        (nvidia / folder).mkdir(parents=True)
    needs = scene.modules.needs

    found = needs.nvidia_folders(
        scene.activator()._package.surroundings, ("bin", "bin/x86_64", "bin/x64")
    )

    assert found[:4] == [
        str(nvidia / folder)
        for folder in ("cublas/bin", "cuda_nvrtc/bin", "cu13/bin", "cu13/bin/x86_64")
    ]


def test_toolkits_are_the_chosen_one_and_those_of_the_wanted_cuda(scene: Scene) -> None:
    environment = {
        "CUDA_PATH": "/chosen",
        "CUDA_PATH_V12_1": "/12.1",
        "CUDA_PATH_V11_2": "/11.2",
        "CUDA_PATH_V11_8": "/11.8",
        "CUDA_PATH_V11_7": "relative",
        "CUDA_PATH_V9_0": "relative",
    }
    lock = scene.activator()._package.lock

    found = scene.modules.needs.toolkit_folders(environment, lock)

    assert found == ["/chosen", "/11.8", "/11.2"]
    assert scene.modules.needs.toolkit_folders({}, replace(lock, platform="linux-x86_64")) == [
        "/usr/local/cuda-11",
        "/usr/local/cuda",
    ]


@pytest.fixture(autouse=True)
def environment_stays() -> Iterator[None]:
    """Hold every test to leaving the environment as it was."""
    before = dict(os.environ)
    yield
    after = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    before.pop("PYTEST_CURRENT_TEST", None)
    assert before == after
