"""Import many modules at once, without the work that Python and pydantic would do in between."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

PLUGIN_LOADER = "pydantic.plugin._loader"


@contextmanager
def many_imports() -> Iterator[None]:
    """Collect no garbage during the block.

    Imports leave no garbage, but the collector walks everything they made again and again: a tenth of their time
    (measured). Afterwards all of it is in the oldest generation, which collections seldom scan.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with _no_search_for_plugins():
            yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():  # otherwise somebody's own frozen objects would be thawed
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@contextmanager
def _no_search_for_plugins() -> Iterator[None]:
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
