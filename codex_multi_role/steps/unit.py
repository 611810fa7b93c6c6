"""One unit of a step's work, and its outcome: the interface of every step kind, and merging an isolated unit's work."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from codex_multi_role.catalog import StepSpec, render
from codex_multi_role.catalog.step_spec import TEMPLATES
from codex_multi_role.catalog.templates import TemplateFailed, render_text
from codex_multi_role.errors import DefinitionError, RoleFailed, UsageError
from codex_multi_role.flow.result_reads import steps_read
from codex_multi_role.flow.state import passes
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.places import Place
from codex_multi_role.run_folder.events import CopyMerged, Warning
from codex_multi_role.steps.protection import SHOWN_PATHS
from codex_multi_role.steps.resources import Recorder, RunResources
from codex_multi_role.steps.turn_record import TurnResult

RESUME_HINT = "`codex-multi-role resume RUN` takes a corrected flow."
SHOWN_CONFLICTS = 3
"""How many paths a message names."""


@dataclass(frozen=True)
class Unit:
    """A step, or one item of a step that fans out.

    ``key`` is unique in the run: ``<step>.<visit>`` and the item's index, below the key of the calling step. ``place``:
    of the step in its flow's file. ``context``: what its templates see. ``ask_role`` asks the step's role with the
    process, thread and number that the walk assigns; ``call_flow`` walks another flow and returns its outcome.
    ``tolerate``: a failure is an outcome and does not end the run. ``set_state(state, reason)`` records the state of an
    item. ``peers``: how many items of its step are worked on at once. ``attempt``: counts the tries of its work.
    """

    step: StepSpec
    key: str
    place: Place
    context: Mapping[str, Any]
    record: Recorder
    ask_role: Callable[[Unit], StepOutcome]
    call_flow: Callable[[Unit, Mapping[str, Any]], StepOutcome]
    tolerate: bool = False
    set_state: Callable[[str, str], None] = lambda state, reason: None
    peers: int = 1
    attempt: int = 1

    @property
    def where(self) -> str:
        """The step, for errors."""
        return f"step {self.step.id}"

    @property
    def below(self) -> str:
        """What the keys of a called flow's units begin with: that of this unit and, from the second on, its try."""
        return f"{self.key}/try-{self.attempt}/" if self.attempt > 1 else f"{self.key}/"

    @property
    def given(self) -> Json:
        """The step's rendered templates, as written if one fails, independent of the cycles, and its item."""
        given = {key: self.step.template(key) for key in ("with", "prompt", "review", "show")}
        with suppress(DefinitionError):
            given = render(given, {**self.context, "cycles": 1}, self.place)
        return {**given, "item": self.context.get("item")}

    def fill(self, key: str) -> Any:  # noqa: ANN401 - the author's choice
        """The step's template of that name, such as ``prompt``, filled in. Raises `TemplateFailed`."""
        return render(self.step.template(key), self.context, self.place / TEMPLATES[key])

    def text(self, key: str) -> str:
        """As `fill`, for a template that must give a text; another value is shown as JSON."""
        return as_text(render_text(self.step.template(key), self.context, self.place / TEMPLATES[key]))

    def failure(self, error: UsageError) -> UsageError:
        """What the step fails with if a value that it got is wrong."""
        items = self.step.for_each.items if self.step.for_each is not None else None
        return step_failure(error, self.key, self.context, self.place, (items, self.step.with_))


@dataclass(frozen=True)
class StepOutcome:
    """``output``: the fields that templates see. ``error``: why it failed, if that was tolerated, or was ``skipped``.

    ``tested``: the state of the files that ``tests`` are about; ``judged``: a check made them, and its step decides.
    ``lost``: its copy could not be merged, so that nobody gets its answer.
    ``bad``: why its result is bad, as its check, its review or the flow that it called says.
    ``turn``: the last turn of an ask, with the handoff as it is passed on; ``done``: a role that may finish said DONE.
    ``tests``: the latest test result, if there is a new one. ``handoffs``: those that a called flow shows, by role, the
    most recent last.
    """

    output: Json
    error: str = ""
    turn: TurnResult | None = None
    done: bool = False
    tests: Json | None = None
    skipped: bool = False
    handoffs: Mapping[str, Json] = field(default_factory=dict)
    bad: str = ""
    tested: str = ""
    judged: bool = False
    lost: bool = False

    @property
    def answer(self) -> Json | None:
        """The last answer of a role, if there is one that others see."""
        if self.turn is not None:
            return None if self.lost else self.turn.handoff
        return [*self.handoffs.values()][-1] if self.handoffs else None

    @property
    def is_good(self) -> bool:
        return not (self.error or self.bad)

    @property
    def flaw(self) -> str:
        """What speaks against work that is done: new failures of its own tests, or its result."""
        tests = self.tests or {"status": "no tests"}
        if new := tests.get("new_failures"):
            return f"{new} new failure{'s' * (new > 1)}"
        return self.bad or ("" if passes(tests) else f"tests: {tests.get('verdict') or tests['status']}")

    @classmethod
    def of(cls, record: Json) -> StepOutcome:
        """The inverse of `as_json`."""
        turn = record["turn"]
        return cls(**{**record, "turn": TurnResult(**turn) if turn else None})

    def as_json(self) -> Json:
        return asdict(self)


def as_text(value: object) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


StepKind = Callable[[RunResources, Unit], StepOutcome]


def merged_back(run: RunResources, step: StepSpec, key: str, outcome: StepOutcome, record: Recorder) -> StepOutcome:
    """The outcome of an isolated unit with its ``copy`` and, if the step merges, the ``merge`` result.

    With conflicts, the unit has failed, and nobody gets its answer, which speaks of files that are not there. The copy
    of a failed unit is left as it is, with ``merge: passed`` also one with a flaw.
    """
    if step.isolate is None:
        return outcome
    output: Json = {**outcome.output, "copy": key}
    if step.isolate.merge == "none" or outcome.error:
        return replace(outcome, output=output)
    with record(f"merge {key}") as work:
        if work.is_due:
            is_left = step.isolate.merge == "passed" and outcome.flaw
            work.result = _leave(run, key, outcome.flaw) if is_left else _merge(run, key)
    output["merge"] = work.result
    problem = _not_merged(key, output["merge"])
    if not problem:
        return replace(outcome, output=output)
    return replace(outcome, output=output, error=problem, bad="", done=False, handoffs={}, lost=True)


def step_failure(
    error: UsageError, key: str, context: Mapping[str, Any], place: Place, given: object = ()
) -> UsageError:
    """``error`` with the ``place`` of its step, and the command that repeats the step whose result is to blame.

    ``given``: the step's templates, one of which may have read that result.
    """
    failure = error if isinstance(error, DefinitionError) else place.error(str(error), error.hint)
    if isinstance(failure, TemplateFailed):
        failure.hint = " ".join(filter(None, (failure.hint, RESUME_HINT)))
    read = {failure.step} if isinstance(failure, TemplateFailed) and failure.step else steps_read(given)
    failure.suggestion = error.suggestion or _repeat(key, context, read.pop() if len(read) == 1 else "")
    return failure


def _repeat(key: str, context: Mapping[str, Any] | None = None, step: str = "") -> str:
    """Fork the run before ``step``, by default before that of the unit; a called flow is repeated as a whole."""
    if step and context and "/" not in key and context["steps"][step]["visits"]:
        return f"fork RUN --from {step}:{context['steps'][step]['visits']}"
    return f"fork RUN --from {':'.join(key.partition('/')[0].split('.')[:2])}"


def merge_failure(run: RunResources, step: StepSpec, key: str, outcome: StepOutcome) -> RoleFailed:
    """What ends the run if a failed merge is not to be tolerated. A resume would find the recorded conflicts again."""
    hint = "The files without conflicts are merged. Merge the others by hand, or fork the run to repeat the step."
    failure = RoleFailed(f"step {step.id}: {outcome.error}; copy: {_place(run, key)}", "merge_conflicts", hint)
    failure.suggestion = _repeat(key)
    return failure


def _not_merged(key: str, merge: Json) -> str:
    """Why the copy could not be merged, with its files; empty if it was."""
    conflicts = [f"{each['path']} ({each['kind']})" for each in merge["conflicts"][:SHOWN_CONFLICTS]]
    if not conflicts:
        return ""
    return f"{key} could not be merged: {', '.join(conflicts)}"


def _place(run: RunResources, key: str) -> Path:
    return run.services.worktrees.open(key).workspace.root


def _leave(run: RunResources, key: str, why: str) -> Json:
    run.services.events.publish(Warning(f"{key} is not merged: {why}; copy: {_place(run, key)}"))
    return {"status": "left", "paths": [], "conflicts": []}


def _merge(run: RunResources, key: str) -> Json:
    with run.progress.stays.at(run.workspace.root), run.progress.workspace_lock:
        merged = run.services.worktrees.merge(key).as_json()
    paths, conflicts = merged["paths"][:SHOWN_PATHS], merged["conflicts"][:SHOWN_PATHS]
    run.services.events.publish(CopyMerged(key, merged["status"], paths, conflicts))
    if problem := _not_merged(key, merged):
        run.services.events.publish(Warning(f"{problem}; copy: {_place(run, key)}"))
    return merged
