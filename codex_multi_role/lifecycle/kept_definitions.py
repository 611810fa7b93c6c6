"""A run's own copies of its YAML, recording and skills, in its ``catalog/``, and its options with their paths."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from codex_multi_role.catalog import KEPT_SKILLS, RoleSpecCatalog
from codex_multi_role.catalog.prices import PRICES_FILE
from codex_multi_role.host.atomic import make_folder, storage_errors, write_text
from codex_multi_role.host.unpacking import write_files
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.lifecycle.model_providers import sources_of
from codex_multi_role.lifecycle.own_records import require_trusted
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import RECORDING, RELOADED, new_numbered
from codex_multi_role.run_options import RunOptions


def keep_definitions(definitions: Definitions, folder: RunFolder, target: Path | None = None) -> str:
    """Copy a run's YAML to ``target``, its ``catalog/`` by default; returns the catalog file, relative to the latter.

    The files keep their relative places, so that the copy loads like the original.
    """
    catalog = _keep_catalog(definitions.catalog, target or folder.catalog_path)
    for flow in definitions.flows.values():
        _copy(flow.source, catalog.parent / "flows" / f"{flow.name}.yaml")
    for settings in definitions.settings:
        _copy(settings, catalog.parent / settings.name)
    _copy(definitions.prices.file, catalog.parent / PRICES_FILE)
    if definitions.playbook is not None:
        playbooks = make_folder(catalog.parent / "playbooks")
        write_text(playbooks / definitions.playbook.source.name, definitions.playbook.text)
    if definitions.stand_in is not None and target is None:  # a resumed run keeps its own
        _copy(definitions.stand_in.path, folder.catalog_path / RECORDING)
    return str(catalog.relative_to(folder.catalog_path))


def keep_changed_roles(catalog: RoleSpecCatalog, folder: RunFolder, catalog_file: str) -> str:
    """Keep the changed roles of a run, with its other definitions unchanged; returns what `keep_definitions` returns.

    All else is copied from beside ``catalog_file``, because somebody who edits roles may also be editing flows.
    """
    kept = _keep_catalog(catalog, new_numbered(folder.catalog_path, RELOADED))
    before = (folder.catalog_path / catalog_file).parent
    for path in filter(Path.is_file, before.rglob("*")):
        name = path.relative_to(before)
        is_shared = name == Path(RECORDING) or name.parts[0].startswith(RELOADED)
        is_skill = name.is_relative_to(KEPT_SKILLS)
        if not (is_shared or is_skill) and not (kept.parent / name).exists():
            _copy(path, kept.parent / name)
    return str(kept.relative_to(folder.catalog_path))


def _keep_catalog(catalog: RoleSpecCatalog, target: Path) -> Path:
    """Copy all files of ``catalog``, with its skills unpacked beside it; returns the path of the copied catalog."""
    of_skills = {path for skill in catalog.skills.values() for path in skill.paths}
    files = [path.resolve() for path in catalog.files if path not in of_skills]
    base = Path(os.path.commonpath([path.parent for path in files]))
    for path in files:
        _copy(path, target / path.relative_to(base))
    kept = target / catalog.source.resolve().relative_to(base)
    for path in catalog.role_files:
        _copy(path, kept.parent / path.name)
    for skill in catalog.skills.values():
        write_files(kept.parent / KEPT_SKILLS / skill.kept_name, skill.files)
    return kept


def _copy(source: Path, target: Path) -> None:
    make_folder(target.parent)
    with storage_errors(target):
        shutil.copyfile(source, target)


def remembered_options(
    folder: RunFolder, record: Mapping[str, Any], changes: Mapping[str, Any] | None = None, team: Path | None = None
) -> RunOptions:
    """The options of a recorded run, with the paths of its own YAML copies; ``record`` is its ``run.json``.

    With ``changes``, to work with: raises `UsageError` as `require_trusted` does, of the copies or of another ``team``.
    """
    catalog, given = folder.catalog_path / record["catalog_file"], RunOptions.from_record(record["options"])
    if changes is not None:
        require_trusted(folder, record, {**given.as_keywords(), **changes}, changes, team or catalog)
    remembered = given.changed(roles=catalog, prices=given.limits.prices and catalog.with_name(PRICES_FILE))
    if stands_in := [name for name, source in sources_of(remembered.added).items() if source.load]:
        return replace(
            remembered, added={**remembered.added, **dict.fromkeys(stands_in, folder.catalog_path / RECORDING)}
        )
    if remembered.answers.playbook is None:
        return remembered
    return remembered.changed(playbook=str(catalog.parent / "playbooks" / record["playbook_file"]))
