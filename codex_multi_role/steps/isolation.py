"""Merge work from a copy of the workspace."""

from __future__ import annotations

from dataclasses import replace

from codex_multi_role.catalog import StepSpec
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder.events import CopyMerged
from codex_multi_role.steps.protection import SHOWN_PATHS
from codex_multi_role.steps.resources import Recorder, RunResources
from codex_multi_role.steps.unit import StepOutcome


def merged_back(run: RunResources, step: StepSpec, key: str, outcome: StepOutcome, record: Recorder) -> StepOutcome:
    """The outcome of an isolated unit with its ``copy`` and, if the step merges, the ``merge`` result.

    A conflict is a result to route on. The copy of a failed unit is left as it is.
    """
    if step.isolate is None:
        return outcome
    output: Json = {**outcome.output, "copy": key}
    if step.merge == "all" and not outcome.error:
        output["merge"] = record(f"merge {key}", lambda _: _merge(run, key))
    return replace(outcome, output=output)


def _merge(run: RunResources, key: str) -> Json:
    with run.progress.workspace_lock:
        merged = run.services.worktrees.merge(key).as_json()
    paths, conflicts = merged["paths"][:SHOWN_PATHS], merged["conflicts"][:SHOWN_PATHS]
    run.services.events.publish(CopyMerged(key, merged["status"], paths, conflicts))
    return merged
