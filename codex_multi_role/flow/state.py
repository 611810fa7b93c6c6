"""What a run knows so far: visits, the latest handoff of every role, the latest output of every step. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from codex_multi_role.catalog import FlowSpec, StepSpec, render
from codex_multi_role.catalog.flow_expressions import shown_whole
from codex_multi_role.catalog.shown_fields import OfItem, OfStep, StepStatus
from codex_multi_role.flow.result_reads import reads_result
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.places import Place

GIVEN_ANYWAY = "tests"
"""The check whose latest result every role gets as such."""
NOT_OF_REVIEW = ("by", "at")
"""Parts of a person's answer that are not passed on to roles."""


def passes(tests: Json) -> bool:
    """Whether a test result has no new failure; one of an older version has only its status."""
    return (tests.get("verdict") or tests["status"]) in ("passed", "no tests")


def _told(answer: Json) -> Json:
    return {name: value for name, value in answer.items() if name not in NOT_OF_REVIEW}


@dataclass(frozen=True)
class HistoryEntry:
    """A turn that left a handoff, which is in the turn's folder, ``<instance>/turn_<nnn>``."""

    role: str
    instance: str
    turn: int


class _Shown(dict[str, Any]):
    """A mapping with attributes that templates can read and that are not printed with the mapping."""

    handoff: Json
    bad: bool


def shown_item(output: Json, own: OfItem, *, is_answer: bool, bad: bool) -> Json:
    """What templates see of an item; ``bad`` is printed only if it is."""
    if bad:
        own = {**own, "bad": True}
    fields = shown(output, own, is_answer=is_answer)
    if "bad" not in fields:
        fields.bad = False
    return fields


def shown(output: Json, own: Mapping[str, Any], *, is_answer: bool) -> _Shown:
    """What templates see of a step or an item: its ``output`` and its ``own`` figures, which no output can replace.

    ``handoff`` is a role's answer as it is. It is among the fields only if figures hide a field of the answer.
    """
    fields = _Shown({**output, **own})
    if is_answer:
        fields.handoff = output
        if output.keys() & own.keys():
            fields.setdefault("handoff", output)
    return fields


def _passed_on(answer: Json | None, item: Json, role: str | None) -> Json:
    """The answer of an item; how it ended, if it has none. Its ``error`` alone could be an answer as well."""
    named = {"role": role} if role else {}
    if answer is None or item["status"] != "done":
        return {**named, "status": item["status"], "error": item["error"]}
    return {**named, **answer}


@dataclass
class StepState:
    """``status``: not_started, running, done or failed. ``output``: the fields of the step's latest result.

    ``bad``: why that is bad, empty if it is not.
    """

    asks: bool = False
    visits: int = 0
    status: StepStatus = "not_started"
    error: str = ""
    bad: str = ""
    output: Json = field(default_factory=dict)

    def seen(self) -> Json:
        """The step as templates see it.

        ``verdict`` is the output's ``status`` (a check's ``passed``), unless the output has its own verdict.
        """
        own: OfStep = {"visits": self.visits, "status": self.status, "error": self.error}
        if "verdict" not in self.output:
            own["verdict"] = self.output.get("status", "")
        return shown(self.output, own, is_answer=self.asks)


@dataclass
class FlowState:
    """One run's progress through its flow. ``cycle``: how often its first step was entered.

    ``latest_handoffs``: one per role, the most recent last. ``shown_handoffs``: those that a calling flow sees.
    ``tested``: the state of the files that the latest tests are about; ``tests_judged``: a step's check made them.
    ``since_answer``: what checks and people said since the last answer, by step. ``item_answers``: the last answers, if
    the items of a step gave them.
    """

    flow: str
    goal: str
    inputs: Mapping[str, Any]
    cycles: int
    first_step: str
    steps: dict[str, StepState]
    vars: dict[str, Any] = field(default_factory=dict)
    latest_handoffs: dict[str, Json] = field(default_factory=dict)
    shown_handoffs: dict[str, Json] = field(default_factory=dict)
    latest_tests: Json | None = None
    tested: str = ""
    tests_judged: bool = False
    asks: dict[str, int] = field(default_factory=dict)
    history: list[HistoryEntry] = field(default_factory=list)
    finished_by: str = ""
    since_answer: dict[str, Json] = field(default_factory=dict)
    item_answers: dict[str, Json] = field(default_factory=dict)

    @property
    def cycle(self) -> int:
        return self.steps[self.first_step].visits

    @property
    def has_results(self) -> bool:
        """Whether a role was asked, or a step has ended."""
        ended = any(step.visits > (step.status == "running") for step in self.steps.values())
        return ended or bool(self.asks)

    @property
    def fails_tests(self) -> bool:
        """Whether the latest test result ends the run without its goal; one that a step's check made does not."""
        tests = self.latest_tests
        return tests is not None and not self.tests_judged and not passes(tests)

    @property
    def misses_tests(self) -> bool:
        """Whether tests are gone, which only a person can confirm, and that is all that is wrong with them."""
        return (self.latest_tests or {}).get("verdict") == "gone"

    def refuse_done(self) -> None:
        """Let the flow continue although a role said DONE, and the next prompts say why."""
        if self.finished_by and self.latest_tests is not None:
            refused = f"{self.finished_by} said DONE, which does not count: the tests have new failures"
            self.latest_tests = {**self.latest_tests, "refused": refused}
        self.finished_by = ""

    def enter(self, step_id: str) -> int:
        """Count a visit; returns its number."""
        step = self.steps[step_id]
        step.visits += 1
        step.status, step.error = "running", ""
        return step.visits

    def next_ask(self, role: str) -> int:
        """Count one more ask of ``role``; returns its number, which is the same on every replay."""
        self.asks[role] = self.asks.get(role, 0) + 1
        return self.asks[role]

    def fork(self) -> FlowState:
        """This state for an item of a fan-out, which counts its asks independently of the others."""
        return replace(self, asks=dict(self.asks), history=[])

    def join(self, items: Sequence[FlowState]) -> None:
        """Add what forks were asked, in item order, so that the result is the same whichever finished first."""
        before = dict(self.asks)
        for item in items:
            self.history += item.history
            for role, number in item.asks.items():
                self.asks[role] = self.asks.get(role, 0) + number - before.get(role, 0)

    def absorb_handoff(self, role: str, instance: str, turn: int, handoff: Json, *, shown: bool = True) -> None:
        self.take_handoffs({role: handoff}, shown=shown)
        self.note_turn(role, instance, turn)

    def note_turn(self, role: str, instance: str, turn: int) -> None:
        """Note a turn that left a handoff, whether or not others get it."""
        self.history.append(HistoryEntry(role, instance, turn))

    def take_handoffs(self, handoffs: Mapping[str, Json], *, shown: bool = True) -> None:
        """Make these handoffs, of a turn or of a called flow, the latest of their roles, in this order."""
        if handoffs:
            self.since_answer, self.item_answers = {}, {}
        for known in (self.latest_handoffs, self.shown_handoffs)[: 2 if shown else 1]:
            for role, handoff in handoffs.items():
                known.pop(role, None)
                known[role] = handoff

    def input_handoff(self, item: Json | None, prompt: str | None = None) -> Json | None:
        """What an ask starts from: the last answer or, without one, the inputs. An ``item`` starts from itself alone.

        Beside the answer, what checks and people said since, as ``steps``. What the ask's own ``prompt`` gives it
        already is left out: results that it reads, inputs and an item that it shows.
        """
        shown = shown_whole(prompt or "")
        if item is not None:
            return None if any((name,) in shown for name in ("item", *item)) else item
        is_read = partial(reads_result, prompt)
        before = self._last_answer(is_read)
        results = {step: result for step, result in self.since_answer.items() if not is_read(step)}
        name = "steps"
        while name in before:
            name += "_"
        inputs = {name: value for name, value in self.inputs.items() if ("inputs", name) not in shown}
        return {**(before or inputs), **({name: results} if results else {})} or None

    def _last_answer(self, is_read: Callable[[str], bool]) -> Json:
        """That of the last role, or those of all items if the last step had some."""
        if not self.item_answers:
            return next(reversed(self.latest_handoffs.values()), {})
        ((step, answers),) = self.item_answers.items()
        return {} if is_read(step) else answers

    def pass_on(self, step: StepSpec, answers: Sequence[Json | None]) -> None:
        """Let the next role know the stored result of the step, or the ``answers`` of its items; None: no answer."""
        output = self.steps[step.id].output
        if step.check == GIVEN_ANYWAY:
            return
        if step.check is not None or step.review is not None:
            self.since_answer.pop(step.id, None)
            self.since_answer[step.id] = _told(output) if step.review else output
        elif step.for_each is not None and any(each is not None for each in answers):
            ended = zip(answers, output["results"], strict=True)
            results = [_passed_on(answer, item, item.get("role") if step.roles else None) for answer, item in ended]
            self.since_answer, self.item_answers = {}, {step.id: {"results": results}}

    def leave(self, step_id: str, output: Json, error: str = "", bad: str = "") -> None:
        """Store the result of the visit."""
        step = self.steps[step_id]
        step.output, step.error, step.bad = output, error, bad
        step.status = "failed" if error else "done"

    def fail(self, step_id: str, error: str) -> None:
        """The visit has failed after its work, whose result stays."""
        self.steps[step_id].status, self.steps[step_id].error = "failed", error

    def set_vars(self, step: StepSpec, place: Place) -> None:
        """Set the variables in the ``set`` of the step, which is at ``place``, after all values have been rendered."""
        if step.set:
            self.vars |= render(step.set, self.context(), place / "set")

    def context(self) -> dict[str, Any]:
        """What templates and conditions see."""
        return {
            "goal": self.goal,
            "inputs": dict(self.inputs),
            "cycle": self.cycle,
            "cycles": self.cycles,
            "vars": dict(self.vars),
            "roles": dict(self.latest_handoffs),
            "steps": {name: step.seen() for name, step in self.steps.items()},
        }


def new_state(flow: FlowSpec, goal: str, inputs: Mapping[str, Any], cycles: int) -> FlowState:
    """The state before the first step. Raises `DefinitionError` if a variable's first value cannot be rendered."""
    steps = {step.id: StepState(asks=step.ask is not None) for step in flow.steps}
    state = FlowState(flow.name, goal, inputs, cycles, flow.steps[0].id, steps)
    known = {"goal": goal, "inputs": dict(inputs), "cycles": cycles}
    state.vars = {name: render(value, known, f"{flow.source}: vars.{name}") for name, value in flow.vars.items()}
    return state
