"""Where programs outside the sandbox come from, above all git: never from a folder that a model can write.

PATH leads into the workspace if that has a virtual environment, and a role that may write can put a ``git`` into it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from codex_multi_role.host.spelling import as_on_disk

_excluded: set[Path] = set()


def exclude_from_path(folder: Path) -> None:
    """Take no program from ``folder`` or below it from now on, because models write there.

    Folders that no longer exist are dropped, so that a process that works on many workspaces does not collect them.
    """
    _excluded.difference_update([each for each in _excluded if not each.exists()])
    _excluded.add(as_on_disk(folder))


def is_outside(path: str) -> bool:
    """Whether the absolute ``path`` is in no folder that models can write."""
    return _is_outside(frozenset(_excluded), path)


def program_path(environment: Mapping[str, str]) -> str:
    """PATH of ``environment`` without folders that models can write and without relative ones, which vary."""
    return _without(frozenset(_excluded), environment.get("PATH", os.defpath))


@lru_cache(maxsize=8)  # once per process of a role; models cannot change where folders outside of theirs lead
def _without(excluded: frozenset[Path], places: str) -> str:
    return os.pathsep.join(place for place in places.split(os.pathsep) if _is_outside(excluded, place))


def _is_outside(excluded: frozenset[Path], place: str) -> bool:
    if not place.startswith("/"):
        return False
    lineages = [(path, *path.parents) for path in (Path(os.path.normpath(place)), as_on_disk(Path(place)))]
    return all(excluded.isdisjoint(lineage) for lineage in lineages)
