from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from codex_multi_role.host.importing import PLUGIN_LOADER, without_plugin_search

LISTS = """
import sys
from codex_multi_role.host.importing import without_plugin_search
with without_plugin_search():
    from pydantic import BaseModel
    class Within(BaseModel): pass
    searched = "importlib.metadata" in sys.modules
class Later(BaseModel): pass
print(searched, "importlib.metadata" in sys.modules)
"""


@pytest.mark.real
def test_pydantic_searches_for_plugins_only_afterwards() -> None:
    """In a process of its own, where nothing has imported pydantic."""
    listed = subprocess.run([sys.executable, "-c", LISTS], capture_output=True, text=True, check=True, timeout=60)
    assert listed.stdout.split() == ["False", "True"]


def test_plugins_that_are_in_use_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = ModuleType(PLUGIN_LOADER)
    monkeypatch.setitem(sys.modules, PLUGIN_LOADER, loader)
    with without_plugin_search():
        assert sys.modules[PLUGIN_LOADER] is loader
    assert sys.modules[PLUGIN_LOADER] is loader
