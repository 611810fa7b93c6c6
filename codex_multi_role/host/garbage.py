"""Python's garbage collection, which imports do better without."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect nothing during the block, for many imports.

    They leave no garbage, but the collector walks everything they made again and again: a tenth of their time
    (measured). Another thread's garbage waits meanwhile.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
