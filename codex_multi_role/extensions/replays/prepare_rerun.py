"""Prepare a rerun: a new run of the current YAML that starts from the workspace with which another run started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays.run_options import RERUN
from codex_multi_role.lifecycle.assembly import idle_parts
from codex_multi_role.lifecycle.fork_workspace import ForkWorkspace
from codex_multi_role.lifecycle.forking import created
from codex_multi_role.lifecycle.kept_definitions import remembered_options
from codex_multi_role.lifecycle.session import Session
from codex_multi_role.option import Use
from codex_multi_role.run_folder import Beginning, RunFolder, beginnings, events_with_inherited
from codex_multi_role.run_options import RunOptions, is_playbook_file, require_changeable


def prepare_rerun(parent: RunFolder, changes: Mapping[str, Any]) -> Session:
    """Create a run that does ``parent`` again and takes over its turns as far as they are equal.

    ``changes`` (`RunOptions` fields) override the parent's options. The parent may be live; it is not changed. Raises
    `UsageError`, `StorageError`; a failure leaves nothing of the new run behind.
    """
    record, beginning, nested = parent.record(), first_visit(parent), list[str]()
    options = rerun_options(parent, record, changes)
    workspace = rerun_workspace(parent, record, options, changes)
    with created(options, workspace) as new:
        if beginning.workspace:
            with idle_parts(new.definitions, new.folder) as parts:
                nested = parts.snapshots.fill_from(parent.snapshots_path, beginning.workspace)
    origin = {"run_id": parent.run_id, "step": beginning.step, "visit": beginning.visit, RERUN: True}
    place = workspace.in_words(new.definitions.workspace, nested)
    note = f"repeats {parent.run_id} and takes over its equal turns; {place}"
    return new.session(origin, note)


def rerun_workspace(
    parent: RunFolder, record: Mapping[str, Any], options: RunOptions, changes: Mapping[str, Any]
) -> ForkWorkspace:
    """Where the rerun with these ``options`` works. Raises `UsageError` for a run that never started."""
    original = Path(record.get("source_workspace", record["workspace"]))  # that the user started the run for
    given = options.place.workspace if "workspace" in changes else None
    return ForkWorkspace(original, given, first_visit(parent).workspace)


def first_visit(parent: RunFolder) -> Beginning:
    """Where the run, or the run that it was forked from, started. Raises `UsageError` if it never did."""
    known = beginnings(events_with_inherited(parent))
    if not known:
        raise UsageError(f"the run {parent.run_id} has not started any step to repeat", "Start another run.")
    return known[0]


def rerun_options(parent: RunFolder, record: Mapping[str, Any], changes: Mapping[str, Any]) -> RunOptions:
    """The options of a rerun of the run with this ``run.json``: the YAML is read where people edit it.

    Raises `UsageError`.
    """
    require_changeable(changes, Use.FORK, "a rerun keeps its run's", record["options"])
    remembered = remembered_options(parent, record, changes, Path(record["roles_source"]))
    given = RunOptions.from_record(record["options"])
    playbook = given.answers.playbook or ""
    if is_playbook_file(playbook) and not Path(playbook).is_file():  # a path, and not a name
        given = given.changed(playbook=remembered.answers.playbook)
    if given.limits.prices and not given.limits.prices.is_file():
        given = given.changed(prices=remembered.limits.prices)
    added = {name: value for name, value in remembered.added.items() if name != "record"}
    options = replace(remembered, added=added).changed(
        run_id=None,
        runs_dir=parent.path.parent,
        worktree=False,
        branch=None,
        roles=Path(record["roles_source"]),
        playbook=given.answers.playbook,
        prices=given.limits.prices,
    )
    if changes.get("flow", options.flow) != options.flow:
        options = replace(options, inputs={})  # they belong to another flow
    return options.changed(**changes)
