"""Simulated nulls of these tests are kept in a folder of their own."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("SMMD_CACHE_DIR", str(tmp_path_factory.mktemp("nulls")))
    yield
    patch.undo()
