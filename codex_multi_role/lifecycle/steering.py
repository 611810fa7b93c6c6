"""The files that steer a run: the YAML it was started from, and what another run started here would read.

Whoever writes one of them decides what roles may do. No model may: such a file is refused in ``files[]`` and in merges,
read-only in every sandbox, and, if it is new, removed after the turn or check that created it.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codex_multi_role.catalog import CATALOG_FILES
from codex_multi_role.catalog.prices import PRICES_FILE
from codex_multi_role.catalog.source_files import LOCAL_ROLES
from codex_multi_role.host.settings_files import PYPROJECT, SETTINGS_FILE, holds_settings, search_folders, user_file
from codex_multi_role.host.spelling import as_on_disk, folded
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.shipped import definition_folders
from codex_multi_role.steps.protection import HEAD
from codex_multi_role.workspace import existing_anywhere, in_place

BESIDE_A_CATALOG = ("flows", "playbooks")
SETTINGS_OF_CHECKS = ("search.yaml",)
"""Those that a check reads in `LOCAL_ROLES`, whether or not it is installed here."""
BESIDE_SHIPPED_ROLES = (*SETTINGS_OF_CHECKS, PRICES_FILE)
"""What a run with the shipped roles reads in `LOCAL_ROLES`."""
_FROM_A_FOLDER = (Path(SETTINGS_FILE), *(LOCAL_ROLES / name for name in (*CATALOG_FILES, *BESIDE_SHIPPED_ROLES)))
FROM_ANY_FOLDER = tuple(f"**/{path.as_posix()}" for path in _FROM_A_FOLDER)
"""Globs of what a run reads that is started in a folder of the workspace, whichever it is."""
_WATCHED = (*FROM_ANY_FOLDER, f"**/{PYPROJECT}")
"""Roles may write a ``pyproject.toml``, unless it holds settings, and until it does."""


@dataclass(frozen=True)
class Steering:
    """``globs`` match these files in the workspace; ``existing`` are on disk, in the workspace or elsewhere.

    ``absent``: those globs that match nothing yet, a repository's HEAD, and `_WATCHED`, whose matches so far are
    ``present``. ``links``: symlinks in the workspace that lead to some of the files.
    """

    globs: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    present: frozenset[str] = frozenset()
    existing: tuple[Path, ...] = ()
    links: tuple[str, ...] = ()

    @classmethod
    def of(cls, definitions: Definitions, catalog: Path, run_folder: Path) -> Steering:
        """Collect the files. ``catalog`` is the file that people edit; a resumed run reads a copy of it."""
        root = definitions.workspace
        folder = as_on_disk(catalog.parent)
        present = existing_anywhere(root, _WATCHED, (run_folder, run_folder.parent))
        named = {
            *_files_read(definitions, catalog.parent),
            *(_catalog_folder(folder, root, catalog.name)),
            *map(_as_a_whole, (*(root / path for path in present), *_project_settings(Path.cwd()))),
            user_file(),
        }
        real = set(map(as_on_disk, named))
        copies = _copies(real, definitions.source_workspace, root)
        named, real = named | copies, real.union(map(as_on_disk, copies))
        globs = _globs(_below(root, real))
        existing = [path for path in sorted(real) if os.path.lexists(path)]
        return cls(
            globs=(*globs, *FROM_ANY_FOLDER),
            absent=(*(each for each in (*globs, HEAD) if not in_place(root, each)), *_WATCHED),
            present=frozenset(present),
            existing=tuple(path for path in existing if not any(parent in real for parent in path.parents)),
            links=_globs(_below(root, {link for path in named for link in _links_to(path, root)})),
        )

    def since(self, earlier: Mapping[str, Any]) -> Steering:
        """Also count as absent what was absent when a killed session began. ``earlier``: its record."""
        absent = (*self.absent, *earlier.get("steering_absent", ()))
        present = self.present.intersection(earlier.get("steering_present", self.present))
        return replace(self, absent=tuple(sorted(set(absent))), present=present)

    def as_json(self) -> Json:
        return {"steering_absent": list(self.absent), "steering_present": sorted(self.present)}


def _copies(paths: Iterable[Path], source: Path, root: Path) -> set[Path]:
    """Where a run's own worktree, ``root``, has those of ``paths`` that are in the ``source`` it was made from."""
    return {root / path for path in _below(source, paths)} if source != root else set()


def _files_read(definitions: Definitions, folder: Path) -> Iterator[Path]:
    """The files that the run was read from, as people edit them: in ``folder``, even if the run uses a copy."""
    read = [*definitions.catalog.files, *definitions.catalog.role_files, *definitions.settings]
    read.append(definitions.prices.file)
    read += [flow.source for flow in definitions.flows.values()]
    if definitions.playbook is not None:
        read.append(definitions.playbook.source)
    for path in read:
        yield folder / os.path.relpath(path, definitions.catalog.source.parent)
    if definitions.stand_in is not None:
        yield definitions.stand_in.path


def _catalog_folder(folder: Path, root: Path, catalog: str) -> Iterator[Path]:
    """The whole folder; of the workspace itself or an arbitrary folder, only what a run looks for beside a catalog."""
    if folder != root and (folder.is_relative_to(root) or catalog in CATALOG_FILES):
        yield folder
        return
    names = {path.name for shipped in definition_folders() for path in shipped.glob("*.yaml")}
    yield from (folder / name for name in names.union(BESIDE_A_CATALOG, BESIDE_SHIPPED_ROLES))


def _project_settings(start: Path) -> Iterator[Path]:
    """What a run reads that is started in ``start``: there, and the settings of the folders above it."""
    yield from (path for path in (start / each for each in _FROM_A_FOLDER) if os.path.lexists(path))
    for folder in search_folders(start):
        yield from (path for path in (folder / SETTINGS_FILE,) if os.path.lexists(path))
        yield from (path for path in (folder / PYPROJECT,) if holds_settings(path))


def _as_a_whole(path: Path) -> Path:
    """The folder of a catalog, because its roles and flows may be any file in it; otherwise ``path`` itself."""
    return path.parent if folded(path.name) in CATALOG_FILES else path


def _below(root: Path, paths: Iterable[Path]) -> Iterator[Path]:
    """Those of ``paths`` in ``root``, relative to it."""
    return (path.relative_to(root) for path in paths if path != root and path.is_relative_to(root))


def _globs(paths: Iterable[Path]) -> tuple[str, ...]:
    return tuple(sorted(glob.escape(path.as_posix()) for path in paths))


def _links_to(path: Path, root: Path) -> Iterator[Path]:
    written = Path(os.path.abspath(path))  # noqa: PTH100 - must not resolve links
    return (each for each in (written, *written.parents) if each.is_relative_to(root) and each.is_symlink())
