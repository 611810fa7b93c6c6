"""Whether a run can be resumed with other inputs: what it has recorded must not depend on those that change."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from codex_multi_role.assembly import idle_parts
from codex_multi_role.definitions import Definitions
from codex_multi_role.errors import UsageError
from codex_multi_role.flow import new_state
from codex_multi_role.run_folder import RunFolder


def require_same_past(definitions: Definitions, folder: RunFolder, earlier: Mapping[str, Any]) -> None:
    """Raise `UsageError` if recorded work of the run was given other values, or would not be reached any more.

    ``earlier``: its ``run.json``. Nothing is carried out: both walks read the journal only.
    """
    inputs = json.loads(json.dumps(dict(definitions.inputs)))
    before = {name: earlier["inputs"].get(name, value) for name, value in inputs.items()}
    cycles = int(earlier["options"]["cycles"])
    changed = [f"inputs.{name}" for name, value in inputs.items() if before[name] != value]
    changed += ["cycles"] if cycles != definitions.options.cycles else []
    if not changed:
        return
    as_before = replace(definitions, inputs=before, options=replace(definitions.options, cycles=cycles))
    from codex_multi_role.engine.journal_fork import recorded_steps  # here: it takes a while to load
    from codex_multi_role.engine.rehearsal import first_difference

    past = recorded_steps(definitions.options.database_url or folder.journal_path, folder.run_id)
    with tempfile.TemporaryDirectory(prefix="codex-multi-role-") as scratch:
        walks = [_walk(each, past, Path(scratch)) for each in (as_before, definitions)]
    unit, start = first_difference(*walks)
    if unit:
        raise UsageError(
            f"{' and '.join(changed)} cannot change now: what run {folder.run_id} recorded of {unit} depends on it",
            f"`codex-multi-role fork {folder.run_id} --from {start}` with the same options repeats the run from "
            "there; without the change, `resume` continues it.",
        )


def _walk(definitions: Definitions, past: Mapping[int, Any], scratch: Path) -> Any:  # noqa: ANN401 - of the engine
    from codex_multi_role.engine.flow_walk import Flows
    from codex_multi_role.engine.rehearsal import walk_past

    options = definitions.options
    state = new_state(definitions.flow, options.goal, definitions.inputs, options.cycles)
    flows = Flows(definitions.flows, cache(definitions.bound))
    with idle_parts(definitions, RunFolder.create(scratch)) as parts:
        return walk_past(flows, state, parts, past)
