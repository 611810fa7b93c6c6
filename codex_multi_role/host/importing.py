"""Import pydantic and its models without the search for plugins."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

PLUGIN_LOADER = "pydantic.plugin._loader"


@contextmanager
def without_plugin_search() -> Iterator[None]:
    """Within the block, pydantic finds no plugins.

    Its search imports 30 modules and reads the metadata of every installed package: 35 ms with a hundred (measured). A
    pydantic that loads them elsewhere searches as usual.
    """
    if PLUGIN_LOADER in sys.modules:
        yield
        return
    sys.modules[PLUGIN_LOADER] = without_plugins = ModuleType(PLUGIN_LOADER)
    vars(without_plugins)["get_plugins"] = tuple
    try:
        yield
    finally:
        del sys.modules[PLUGIN_LOADER]
