"""Import much at once, without slowing down what the process does meanwhile."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

TURN_SECONDS = 0.0005
"""How long an import may keep other threads waiting, by default ten times as long: each message of Codex needs several
turns of them."""
WITHOUT_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"


@contextmanager
def many_imports() -> Iterator[None]:
    """Collect no garbage during the block, and let other threads have their turn soon.

    Imports leave no garbage, but the collector walks everything they made again and again: a tenth of their time
    (measured). Afterwards all of it is in the oldest generation, which collections seldom scan.
    """
    was_enabled, interval = gc.isenabled(), sys.getswitchinterval()
    gc.disable()
    sys.setswitchinterval(TURN_SECONDS)
    try:
        with _no_search_for_plugins():
            yield
    finally:
        sys.setswitchinterval(interval)
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
