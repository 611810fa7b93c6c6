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
    """``shared``: whether others that may write worked in the same workspace at any time during this stay."""

    may_write: bool
    shared: bool = False


class Stays:
    """The current stays, by workspace. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._present: dict[Path, set[Stay]] = defaultdict(set)

    @contextmanager
    def at(self, workspace: Path, *, may_write: bool = True) -> Iterator[Stay]:
        """While the block runs, something works in ``workspace``."""
        stay = Stay(may_write)
        with self._lock:
            present = self._present[workspace]
            stay.shared = any(each.may_write for each in present)
            for each in present:
                each.shared |= may_write
            present.add(stay)
        try:
            yield stay
        finally:
            with self._lock:
                present.discard(stay)
