from __future__ import annotations

import gc
import subprocess
import sys
from types import ModuleType

import pytest

from codex_multi_role.host.importing import PLUGIN_LOADER, many_imports


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_restored(enabled: bool) -> None:
    if not enabled:
        gc.disable()
    try:
        with many_imports():
            assert not gc.isenabled()
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_what_was_imported_is_old_for_the_collector() -> None:
    """Otherwise the first collection afterwards would walk all of it."""
    gc.unfreeze()  # what this process of tests keeps
    try:
        with many_imports():
            imported: list[list[int]] = [[] for _ in range(20_000)]
        young, old = gc.get_objects(generation=0), gc.get_objects(generation=2)
        assert [any(each is imported for each in found) for found in (young, old)] == [False, True]
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()


LISTS = """
import sys
from codex_multi_role.host.importing import many_imports
with many_imports():
    from pydantic import BaseModel
    class Within(BaseModel): pass
    searched = "importlib.metadata" in sys.modules
class Later(BaseModel): pass
print(searched, "importlib.metadata" in sys.modules)
"""


def test_pydantic_searches_for_plugins_only_afterwards() -> None:
    """In a process of its own, where nothing has imported pydantic."""
    listed = subprocess.run([sys.executable, "-c", LISTS], capture_output=True, text=True, check=True, timeout=60)
    assert listed.stdout.split() == ["False", "True"]


def test_plugins_that_are_in_use_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = ModuleType(PLUGIN_LOADER)
    monkeypatch.setitem(sys.modules, PLUGIN_LOADER, loader)
    with many_imports():
        assert sys.modules[PLUGIN_LOADER] is loader
    assert sys.modules[PLUGIN_LOADER] is loader
