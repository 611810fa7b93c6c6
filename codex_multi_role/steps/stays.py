"""Who works in which workspace at the same time: turns, applied files, checks and merges of one run."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(eq=False)
class Stay:
    """``shared``: whether others worked in the same workspace at any time during this stay."""

    shared: bool = False


class Stays:
    """The current stays, by workspace. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._present: dict[Path, set[Stay]] = defaultdict(set)

    @contextmanager
    def at(self, workspace: Path) -> Iterator[Stay]:
        """While the block runs, something works in ``workspace`` and may change it."""
        stay = Stay()
        with self._lock:
            present = self._present[workspace]
            present.add(stay)
            if len(present) > 1:
                for each in present:
                    each.shared = True
        try:
            yield stay
        finally:
            with self._lock:
                present.discard(stay)
