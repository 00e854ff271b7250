"""What holds for every test."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_build_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the user's cache of finished builds out of it, in programs too."""
    patch = pytest.MonkeyPatch()
    patch.setenv("CUDNN_BUNDLER_CACHE", str(tmp_path_factory.mktemp("build-cache")))
