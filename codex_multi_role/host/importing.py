"""Import many modules at once, without the work that Python and pydantic would do in between."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

WITHOUT_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"


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
    """Within the block, pydantic does not look for its plugins: in every installed package, 20 ms with a hundred.

    Only while there is one thread, because another one may start a program, which would inherit the variable.
    """
    if WITHOUT_PLUGINS in os.environ or threading.active_count() > 1:
        yield
        return
    os.environ[WITHOUT_PLUGINS] = "__all__"
    try:
        yield
    finally:
        del os.environ[WITHOUT_PLUGINS]
