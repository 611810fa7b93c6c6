"""Whether a run can be resumed: same folder, same team, and only such changes as its past does not depend on."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from codex_multi_role.catalog import EVERY_ROLE, RoleSpecCatalog, read_flows
from codex_multi_role.errors import ExitCode, StorageError, UsageError
from codex_multi_role.flow import new_state
from codex_multi_role.lifecycle.assembly import idle_parts
from codex_multi_role.lifecycle.corrected_flows import (
    are_edited,
    changed_flows,
    edited_flows,
    require_no_wider_rights,
)
from codex_multi_role.lifecycle.definitions import Definitions, LoadTeam
from codex_multi_role.lifecycle.placement import journals_for
from codex_multi_role.lifecycle.team_loading import checked_team, load_catalog, load_flow_and_called
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.owner import read_owner
from codex_multi_role.run_options import OPTIONS, RunReport, recorded_report

FLOW = "the flow "
ALLOW_REMOVED = "allow_removed_tests"


def finished_report(folder: RunFolder, record: Mapping[str, Any]) -> RunReport | None:
    """How the run of this ``run.json`` ended if its flow has; None as long as a process owns it, killed or not."""
    code = ExitCode.find(record["exit_code"])
    if code is None or code.is_resumable or read_owner(folder):
        return None
    page = folder.report_path if folder.report_path.exists() else None
    return recorded_report(folder.path, record, "The run had already finished, so nothing was started.", page)


def require_same_workspace(folder: RunFolder, record: Mapping[str, Any]) -> None:
    """Raise `UsageError` if the recorded workspace is missing, or is not the folder that the run worked in.

    Its content proves nothing, because people edit it between sessions. What counts is its inode, and that a folder of
    runs inside it has not left it.
    """
    workspace, runs = Path(record["workspace"]), Path(record["options"]["runs_dir"])
    runs_now = folder.path.parent.resolve()
    moved_to = None
    if runs.is_relative_to(workspace) and runs != runs_now:
        place = runs.relative_to(workspace).parts
        problem = f"its folder of runs was moved from {runs} to {runs_now}"
        moved_to = runs_now.parents[len(place) - 1] if runs_now.parts[-len(place) :] == place else None
    elif not workspace.exists():
        problem = f"the workspace {workspace} does not exist"
    elif workspace.is_dir() and workspace.stat().st_ino != record.get("workspace_inode"):
        problem = (
            f"the workspace {workspace} is not the folder that the run worked in, but another folder of the same name"
        )
    else:
        return
    raise UsageError(
        f"run {folder.run_id} cannot continue: {problem}",
        "Name the folder to work in, even if it is the same: "
        f"`{folder.command('resume', '--workspace', str(moved_to or 'DIR'))}`.",
    )


def _require_same_team(definitions: Definitions, before: RoleSpecCatalog) -> None:
    """Raise `UsageError` if the roles differ from ``before`` in what the journal's order and end depend on."""

    def fixed(catalog: RoleSpecCatalog) -> list[tuple[object, ...]]:
        return [(role.name, role.depends_on, role.max_steps, role.behaviors.can_finish) for role in catalog.roles]

    asks_all = any(step.ask == EVERY_ROLE for flow in definitions.flows.values() for step in flow.steps)
    if asks_all and fixed(before) != fixed(definitions.catalog):
        raise UsageError(
            "a resumed run keeps its roles: their names, order, depends_on, max_steps and behaviors.can_finish",
            "Fork the run before them, or start another run.",
        )


def require_same_past(definitions: Definitions, folder: RunFolder, earlier: Mapping[str, Any]) -> None:
    """Raise `UsageError` if recorded work had another team, other inputs or another flow, or would not be reached.

    ``earlier``: the run's ``run.json``. Nothing is executed: both walks only read the journal.
    """
    as_before = _as_before(definitions, folder, earlier)
    _require_same_team(definitions, as_before.catalog)
    changed = _changed(as_before, definitions)
    if not changed:
        return
    if any(each.startswith(FLOW) for each in changed):
        require_no_wider_rights(as_before, definitions, folder)
    from codex_multi_role.engine.rehearsal import first_difference  # lazy: slow to import

    try:
        past = journals_for(definitions.options).steps(folder)
    except StorageError:  # the session will fail on the journal as well, and record that
        return
    with tempfile.TemporaryDirectory(prefix="codex-multi-role-") as scratch:
        walks = [_walk(each, past, Path(scratch)) for each in (as_before, definitions)]
    unit, start = first_difference(*walks)
    if unit:
        raise UsageError(
            f"{' and '.join(changed)} cannot be changed: what run {folder.run_id} recorded of {unit} depends on it",
            f"`{folder.command('fork', '--from', start, *_as_typed(definitions, changed))}` repeats the run "
            f"from there; without the change, `{folder.command('resume')}` continues it.",
        )


def with_corrected_flow(
    recorded: Definitions, folder: RunFolder, record: Mapping[str, Any], load: Callable[[Path, LoadTeam], Definitions]
) -> tuple[Definitions, str]:
    """The definitions of a resumed run with its flow as people have corrected it since, beside their catalog.

    They stay as ``recorded``, with a warning, if the flow cannot be used, fits no longer or allows more. ``load`` loads
    definitions with other flows. ``record``: ``run.json``.
    """
    flow = recorded.options.flow
    if "roles_source" not in record or not are_edited(recorded.flows, record):  # some earlier versions kept none
        return recorded, ""
    catalog = Path(record["roles_source"])
    try:
        flows = edited_flows(recorded.flows, flow, catalog)
        if not flows:
            return recorded, ""
        corrected = load(catalog, lambda *_: checked_team(flows, recorded.catalog))
        require_same_past(corrected, folder, record)
    except UsageError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return recorded, f"the run continues with its own copy of the flow {flow}: {error}{hint}"
    return corrected, ""


def edited_since(definitions: Definitions, folder: RunFolder, earlier: Mapping[str, Any]) -> list[str]:
    """The names of the flows that differ from those of the previous session."""
    kept = folder.catalog_path / earlier["catalog_file"]
    return changed_flows(read_flows(definitions.options.flow, kept.parent), definitions.flows)


def uses_other_files(definitions: Definitions, folder: RunFolder) -> bool:
    """Whether ``definitions`` of a resumed run come from elsewhere than its own copies, or are not files yet."""
    sources = [definitions.catalog.source, *([definitions.playbook.source] if definitions.playbook else [])]
    sources += [definitions.options.limits.prices] if definitions.options.limits.prices else []
    sources += [flow.source for flow in definitions.flows.values()]
    own = folder.catalog_path.resolve()
    return not all(source.resolve().is_relative_to(own) and source.is_file() for source in sources)


def _as_before(definitions: Definitions, folder: RunFolder, earlier: Mapping[str, Any]) -> Definitions:
    """``definitions`` with the inputs, cycles, flows and roles of the previous session."""
    inputs = json.loads(json.dumps(dict(definitions.inputs)))
    before = replace(
        definitions,
        inputs={name: earlier["inputs"].get(name, value) for name, value in inputs.items()},
        options=definitions.options.changed(
            cycles=int(earlier["options"]["cycles"]), allow_removed_tests=earlier["options"].get(ALLOW_REMOVED) or ()
        ),
    )
    if not uses_other_files(definitions, folder):
        return before
    kept = load_catalog(folder.catalog_path / earlier["catalog_file"])
    return replace(before, team=load_flow_and_called(definitions.options.flow, kept))


def _changed(before: Definitions, now: Definitions) -> list[str]:
    """What differs, as messages name it: ``inputs.x``, ``cycles``, ``the flow x``."""
    inputs = json.loads(json.dumps(dict(now.inputs)))
    changed = [f"inputs.{name}" for name, value in inputs.items() if before.inputs[name] != value]
    one, other = before.options.as_keywords(), now.options.as_keywords()
    changed += [name for name in ("cycles", ALLOW_REMOVED) if one[name] != other[name]]
    return changed + [f"{FLOW}{name}" for name in changed_flows(before.flows, now.flows)]


def _as_typed(definitions: Definitions, changed: Sequence[str]) -> list[str]:
    """What `_changed` returned, as command-line options."""
    options = definitions.options.as_keywords()
    given = {name: options[name] for name in ("cycles", ALLOW_REMOVED) if name in changed}
    given |= {"inputs": {name: each for name, each in definitions.inputs.items() if f"inputs.{name}" in changed}}
    given |= {"roles": options["roles"]} if any(each.startswith(FLOW) for each in changed) else {}
    return [word for name, value in given.items() for words in OPTIONS[name].arguments(value) for word in words]


def _walk(definitions: Definitions, past: Mapping[int, Any], scratch: Path) -> Any:  # noqa: ANN401 - of the engine
    from codex_multi_role.engine.flow_walk import CallableFlows
    from codex_multi_role.engine.rehearsal import walk_past

    options = definitions.options
    state = new_state(definitions.flow, options.goal, definitions.inputs, options.cycles)
    flows = CallableFlows(definitions.flows, cache(definitions.bound))
    with idle_parts(definitions, RunFolder.create(scratch)) as parts:
        return walk_past(flows, state, parts, past)
