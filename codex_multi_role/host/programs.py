"""Where programs outside the sandbox and their code come from: never from a folder that a model can write.

PATH leads into the workspace if that has a virtual environment, and a role that may write can put a ``git`` into it.
Other variables name modules and libraries that a program loads as soon as it starts, such as a ``sitecustomize.py``.
Models can write temporary folders as well. What exists in those can be kept from them (`loaded_in_temporary_folders`),
so that only what is missing there counts as writable.
"""

from __future__ import annotations

import json
import os
import site
import sys
from collections.abc import Mapping
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

from codex_multi_role.errors import UsageError
from codex_multi_role.host.spelling import as_on_disk

_FOLDERS = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX", "COVERAGE_PROCESS_START"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH"),
    *("GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_TEMPLATE_DIR"),
)
"""Each entry is a path."""
_LIBRARIES = ("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "PYTHONPLATLIBDIR")
_COMMANDS = (
    *("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND"),
    "PYTHONEXECUTABLE",
)
"""As in `_LIBRARIES`, a name without a slash is searched where the system or PATH says. Its arguments are data."""
_excluded: set[Path] = set()


def exclude_from_path(folder: Path) -> None:
    """Take no program from ``folder`` or below it from now on, because models write there.

    Folders that no longer exist are dropped, so that a process that works on many workspaces does not collect them.
    """
    _excluded.difference_update([each for each in [*_excluded] if not each.exists()])
    _excluded.add(as_on_disk(folder))


def is_outside(path: str) -> bool:
    """Whether the absolute ``path`` is in no folder that models can write."""
    return _is_outside(frozenset(_excluded), path)


def program_path(environment: Mapping[str, str]) -> str:
    """PATH of ``environment`` without folders that models can write and without relative ones, which vary."""
    return _without(frozenset(_excluded), environment.get("PATH", os.defpath))


def steering_variables(environment: Mapping[str, str]) -> dict[str, list[str]]:
    """The variables that make our programs load code which a model can write, with those of their entries."""
    found = {name: _steerable(environment, name) for name in (*_FOLDERS, *_LIBRARIES, *_COMMANDS)}
    return {name: entries for name, entries in found.items() if entries}


def require_unsteered(environment: Mapping[str, str], *writable: Path) -> None:
    """Raise UsageError if our programs load code that a model can write: every later start would execute it.

    ``writable``: further folders in which models write; they stay excluded.
    """
    for folder in writable:
        exclude_from_path(folder)
    found = steering_variables(environment)
    if site.ENABLE_USER_SITE and site.USER_SITE and not is_outside(site.USER_SITE):
        found["the user's site-packages"] = [site.USER_SITE]
    if found:
        raise UsageError(
            "models could write code that codex-multi-role itself loads, outside the sandbox, through "
            + "; ".join(f"{name}: {', '.join(map(json.dumps, entries))}" for name, entries in found.items()),
            "Relative and empty entries depend on the current folder, the others are in a folder that models write. "
            "Remove them for this command: `env -u VARIABLE codex-multi-role …`. For tests, pytest's setting "
            "`pythonpath` does the same as PYTHONPATH.",
        )


def loaded_in_temporary_folders(environment: Mapping[str, str]) -> list[Path]:
    """The files and folders there from which our programs come or load code: no role may write them."""
    variables = (*_FOLDERS, *_LIBRARIES, *_COMMANDS)
    named = (each for variable in variables for each in _entries(environment, variable))
    ours = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[1]), site.USER_SITE or "")
    places = dict.fromkeys((*named, *environment.get("PATH", "").split(os.pathsep), *ours))
    return [Path(each) for each in places if each.startswith("/") and _is_temporary(each) and not _is_loose(each)]


def _is_temporary(place: str) -> bool:
    return any(each in _temporary_folders() for each in (as_on_disk(Path(place)), *as_on_disk(Path(place)).parents))


def _temporary_folders() -> set[Path]:
    """Those that Codex lets a role write that may write anything."""
    return {as_on_disk(Path(each)) for each in ("/tmp", os.environ.get("TMPDIR") or "/tmp")}


def _is_loose(place: str) -> bool:
    """Whether a model can put something at ``place``, in a temporary folder: it is missing, behind a link, or that."""
    if not _is_temporary(place):
        return False
    path, folders = Path(os.path.normpath(place)), _temporary_folders()
    below = list(takewhile(lambda each: as_on_disk(each) not in folders, (path, *path.parents)))
    return not below or not path.exists() or any(each.is_symlink() for each in below)


def _steerable(environment: Mapping[str, str], variable: str) -> list[str]:
    entries = _entries(environment, variable)
    return [each for each in entries if not _is_outside(frozenset(_excluded), each) or _is_loose(each)]


def _entries(environment: Mapping[str, str], variable: str) -> list[str]:
    value = environment.get(variable)
    if not value:  # unlike an empty entry, an empty variable names nothing
        return []
    if variable in _FOLDERS:
        return value.split(os.pathsep)
    words = value.split()[:1] if variable in _COMMANDS else value.replace(os.pathsep, " ").split()
    return [word for each in words if "/" in (word := each.strip("'\""))]


@lru_cache(maxsize=8)  # once per process of a role; models cannot change where folders outside of theirs lead
def _without(excluded: frozenset[Path], places: str) -> str:
    return os.pathsep.join(place for place in places.split(os.pathsep) if _is_outside(excluded, place))


def _is_outside(excluded: frozenset[Path], place: str) -> bool:
    if not place.startswith("/"):
        return False
    lineages = [(path, *path.parents) for path in (Path(os.path.normpath(place)), as_on_disk(Path(place)))]
    return all(excluded.isdisjoint(lineage) for lineage in lineages)
