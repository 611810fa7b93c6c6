"""Flow files that people correct after a run was started, which works with its own copies.

`resume` takes a correction that fits what the run has recorded (`require_same_past`) and allows no more than before.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.catalog import FlowSpec, RoleSpec, read_flows, without_wider_rights
from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.lifecycle.own_records import flows_outside
from codex_multi_role.reading.shipped import FLOWS, packaged_roles
from codex_multi_role.run_folder import RunFolder

Flows = Mapping[str, FlowSpec]


def flow_texts(kept: Flows, catalog: Path) -> dict[Path, bytes]:
    """What is in the files of these flows beside the ``catalog`` that people edit; nothing of shipped ones."""
    folder = catalog.parent
    if not catalog.is_file() or folder == packaged_roles():
        return {}
    named = ([folder / FLOWS / f"{name}.{ending}" for ending in ("yaml", "yml")] for name in kept)
    files = (next(filter(Path.is_file, each), None) for each in named)
    return {file: file.read_bytes() for file in files if file is not None}


def edited_flows(kept: Flows, name: str, catalog: Path) -> dict[str, FlowSpec]:
    """The flow ``name`` and those it calls as they are beside ``catalog`` now, or as ``kept`` where they are shipped.

    Empty if they say the same as ``kept``. Raises `DefinitionError`.
    """
    folder = catalog.parent
    read = read_flows(name, folder).items()
    flows = {each: flow if flow.source.is_relative_to(folder) else kept.get(each, flow) for each, flow in read}
    return flows if changed_flows(kept, flows) else {}


def changed_flows(before: Flows, now: Flows) -> list[str]:
    """The names of those that differ, wherever their files are, or that one of both lacks."""
    then, flows = (
        {name: flow.model_copy(update={"source": Path()}) for name, flow in each.items()} for each in (before, now)
    )
    return [name for name in sorted({*then, *flows}) if then.get(name) != flows.get(name)]


class FlowEdits:
    """Edits of a run's flows beside ``catalog`` while it works with its own, from here on."""

    def __init__(self, definitions: Definitions, catalog: Path) -> None:
        self._definitions = definitions
        self._catalog = catalog
        self._texts = flow_texts(definitions.flows, catalog)

    @property
    def files(self) -> list[Path]:
        return list(self._texts)

    def found(self) -> bool:
        """Whether an edit since the last call lets the flows say something else, or nothing that can be read."""
        kept = self._definitions.flows
        try:
            texts, self._texts = self._texts, flow_texts(kept, self._catalog)
            changed = bool(self._texts) and texts != self._texts
            return changed and bool(edited_flows(kept, self._definitions.options.flow, self._catalog))
        except UsageError:  # half written, or wrong: `resume` says what
            return True
        except OSError:  # deleted meanwhile
            return False


def are_edited(kept: Flows, record: Mapping[str, Any]) -> bool:
    """Whether somebody has edited the files that the flows ``kept`` by a run are copies of. ``record``: ``run.json``.

    A file that was not there when the run started may be a killed turn's.
    """
    root = Path(record.get("source_workspace", record["workspace"]))
    absent = set(record.get("steering_absent", ()))

    def is_new(file: Path) -> bool:
        below = file.relative_to(root) if file.is_relative_to(root) else Path()
        return any(glob.escape(each.as_posix()) in absent for each in (below, *below.parents))

    copies = {name: flow.source.read_bytes() for name, flow in kept.items()}
    texts = flow_texts(kept, Path(record["roles_source"]))
    return any(text != copies[file.stem] and not is_new(file) for file, text in texts.items())


def require_no_wider_rights(before: Definitions, now: Definitions, folder: RunFolder) -> None:
    """Raise `UsageError` if the flows of ``now`` allow what those of ``before`` did not."""
    if wider := list(dict.fromkeys(_wider_rights(before, now))):
        raise UsageError(
            f"the flow {now.options.flow} cannot be changed so that it allows more: {'; '.join(wider)}",
            "A resumed run gets no more rights, a fork may: "
            f"`{folder.command('fork', '--from', 'STEP', '--roles', str(now.options.place.roles))}`.",
        )


def _wider_rights(before: Definitions, now: Definitions) -> Iterator[str]:
    asked = {role.name for role in before.roles}
    for role in now.roles:
        if role.name not in asked and all(_may_more(each, role) for each in before.roles):
            yield f"it asks {role.name}, who may do more than the roles asked so far"
    if now.changes_workspace and not before.changes_workspace:
        yield "it changes the workspace"
    known = dict(flows_outside(before.flows, before.options.tests.test_sandbox))
    found = flows_outside(now.flows, now.options.tests.test_sandbox)
    yield from (words for key, words in found if key not in known)
    if lifted := sorted(_protected(before) - _protected(now)):
        yield f"it no longer protects {', '.join(lifted)}"


def _may_more(then: RoleSpec, now: RoleSpec) -> bool:
    return bool(without_wider_rights(then, now)[1]) or not set(now.tools) <= set(then.tools)


def _protected(definitions: Definitions) -> set[str]:
    return {each for flow in definitions.flows.values() for each in flow.protect}
