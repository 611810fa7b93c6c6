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
from codex_multi_role.catalog.skills import SKILLS_FOLDER
from codex_multi_role.catalog.source_files import LOCAL_ROLES
from codex_multi_role.host.settings_files import PYPROJECT, SETTINGS_FILE, holds_settings, search_folders, user_file
from codex_multi_role.host.spelling import as_on_disk, folded
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.shipped import FLOWS, PLAYBOOKS, STARTERS, definition_folders
from codex_multi_role.steps.protection import HEAD
from codex_multi_role.workspace import existing_anywhere, matches
from codex_multi_role.workspace.paths import covers, patterns_of

_YAML = ("*.yaml", "*.yml")
_FOLDERS = (FLOWS, PLAYBOOKS, STARTERS, SKILLS_FOLDER)
"""With `_YAML`, what a run reads in a folder of roles, whichever part of it, of ours or of a plug-in, reads it."""
_ROLES = f"**/{LOCAL_ROLES}"
FROM_ANY_FOLDER = (f"**/{SETTINGS_FILE}", *(f"{_ROLES}/{name}" for name in (*_YAML, *_FOLDERS)))
"""Globs of what a run reads that is started in a folder of the workspace, whichever it is."""
_WATCHED = (*FROM_ANY_FOLDER, f"**/{PYPROJECT}")
"""Roles may write a ``pyproject.toml``, unless it holds settings, and until it does."""
_PATTERNS = patterns_of(_WATCHED)


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
        seen = existing_anywhere(root, (*_WATCHED, _ROLES), (run_folder, run_folder.parent))
        present = {path for path in seen if covers(_PATTERNS, path)}
        of_roles = [root / path for path in seen if folded(Path(path).name) == str(LOCAL_ROLES)]
        folder, places = _catalog_folder(definitions, as_on_disk(catalog.parent), catalog.name)
        places |= {as_on_disk(path) for path in of_roles if path.is_symlink()}
        named = {
            *_files_read(definitions, catalog.parent),
            *folder,
            *_of_plug_ins(of_roles),
            *(path for place in places for path in _read_in(place)),
            *map(_as_a_whole, (*(root / path for path in present), *_project_settings(Path.cwd()))),
            user_file(),
        }
        real = {path for path in map(as_on_disk, named) if path != root}
        copies = _copies(real, definitions.source_workspace, root)
        named, real = named | copies, real.union(map(as_on_disk, copies))
        watched = tuple(f"{each}{name}" for each in _globs_of_folders(root, places) for name in _YAML)
        globs = _globs(_below(root, real))
        whole = {path for path in real if not root.is_relative_to(path)}
        existing = [path for path in sorted(real) if os.path.lexists(path)]
        return cls(
            globs=(*globs, *watched, *FROM_ANY_FOLDER),
            absent=(*(each for each in (*globs, HEAD) if not matches(root, each)), *watched, *_WATCHED),
            present=frozenset(present.union(path for each in watched for path in matches(root, each))),
            existing=tuple(path for path in existing if not any(parent in whole for parent in path.parents)),
            links=_globs(_below(root, {link for path in named for link in _links_to(path, root)})),
        )

    def since(self, earlier: Mapping[str, Any]) -> Steering:
        """Also count as absent what was absent when a killed session began. ``earlier``: its record."""
        before = earlier.get("steering_absent", ())
        absent, watched = (*self.absent, *before), patterns_of(before)
        known = earlier.get("steering_present", self.present)
        present = frozenset(path for path in self.present if path in known or not covers(watched, path))
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


def _catalog_folder(definitions: Definitions, folder: Path, catalog: str) -> tuple[list[Path], set[Path]]:
    """The ``folder`` as a whole and none of `_read_in`, or the reverse: of the workspace itself or an arbitrary one."""
    root, source = definitions.workspace, definitions.source_workspace
    places = {root} if folded(source.name) == str(LOCAL_ROLES) else set()
    if folder not in (root, source) and (folder.is_relative_to(root) or catalog in CATALOG_FILES):
        return [folder], places
    return [], places | {root if folder == source else folder}


def _of_plug_ins(folders: Iterable[Path]) -> list[Path]:
    """Those of ``folders`` that installed packages have their definitions in; looked up only if one may be."""
    in_packages = [folder for folder in folders if (folder.parent / "__init__.py").exists()]
    return [folder for folder in definition_folders() if folder in in_packages] if in_packages else []


def _read_in(place: Path) -> Iterator[Path]:
    """What a run reads in a folder of roles that has other files as well; whether or not the folders exist."""
    yield from (place / name for each in _YAML for name in matches(place, each))
    yield from (place / name for name in _FOLDERS)


def _project_settings(start: Path) -> Iterator[Path]:
    """What a run reads that is started in ``start``: there, and the settings of the folders above it."""
    yield from (path for path in _read_in(start / LOCAL_ROLES) if os.path.lexists(path))
    for folder in search_folders(start):
        yield from (path for path in (folder / SETTINGS_FILE,) if os.path.lexists(path))
        yield from (path for path in (folder / PYPROJECT,) if holds_settings(path))


def _as_a_whole(path: Path) -> Path:
    """The folder of a catalog, because its roles and flows may be any file in it; otherwise ``path`` itself."""
    return path.parent if folded(path.name) in CATALOG_FILES else path


def _below(root: Path, paths: Iterable[Path]) -> Iterator[Path]:
    """Those of ``paths`` in ``root``, relative to it."""
    return (path.relative_to(root) for path in paths if path != root and path.is_relative_to(root))


def _globs_of_folders(root: Path, folders: Iterable[Path]) -> Iterator[str]:
    """A glob of each of ``folders`` that is in ``root`` or is it, to continue with a name."""
    below = sorted(each.relative_to(root).as_posix() for each in folders if each.is_relative_to(root))
    return ("" if each == "." else f"{glob.escape(each)}/" for each in below)


def _globs(paths: Iterable[Path]) -> tuple[str, ...]:
    return tuple(sorted(glob.escape(path.as_posix()) for path in paths))


def _links_to(path: Path, root: Path) -> Iterator[Path]:
    written = Path(os.path.abspath(path))  # noqa: PTH100 - must not resolve links
    return (each for each in (written, *written.parents) if each.is_relative_to(root) and each.is_symlink())
