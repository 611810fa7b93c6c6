"""What a run knows so far: visits, the latest handoff of every role, the latest output of every step. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from codex_multi_role.catalog import FlowSpec, StepSpec, render
from codex_multi_role.reading.json_types import Json


@dataclass(frozen=True)
class HistoryEntry:
    """A turn that left a handoff, which is in the turn's folder, ``<instance>/turn_<nnn>``."""

    role: str
    instance: str
    turn: int


class _Shown(dict[str, Any]):
    """A mapping with an attribute that templates can read and that is not printed with the mapping."""

    handoff: Json


def shown(output: Json, own: Json, *, is_answer: bool) -> Json:
    """What templates see of a step or an item: its ``output`` and its ``own`` figures, which no output can replace.

    ``handoff`` is a role's answer as it is. It is among the fields only if figures hide a field of the answer.
    """
    fields = _Shown({**output, **own})
    if is_answer:
        fields.handoff = output
        if output.keys() & own.keys():
            fields.setdefault("handoff", output)
    return fields


@dataclass
class StepState:
    """``status``: not_started, running, done or failed. ``output``: the fields of the step's latest result."""

    asks: bool = False
    visits: int = 0
    status: str = "not_started"
    error: str = ""
    output: Json = field(default_factory=dict)

    def seen(self) -> Json:
        """The step as templates see it.

        ``verdict`` is the output's ``status`` (a check's ``passed``), unless the output has its own verdict.
        """
        own = {"visits": self.visits, "status": self.status, "error": self.error}
        own |= {} if "verdict" in self.output else {"verdict": self.output.get("status", "")}
        return shown(self.output, own, is_answer=self.asks)


@dataclass
class FlowState:
    """One run's progress through its flow. ``cycle``: how often its first step was entered.

    ``latest_handoffs``: one per role, the most recent last. ``shown_handoffs``: those that a calling flow sees.
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
    asks: dict[str, int] = field(default_factory=dict)
    history: list[HistoryEntry] = field(default_factory=list)
    finished_by: str = ""

    @property
    def cycle(self) -> int:
        return self.steps[self.first_step].visits

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
        self.history.append(HistoryEntry(role, instance, turn))

    def take_handoffs(self, handoffs: Mapping[str, Json], *, shown: bool = True) -> None:
        """Make these handoffs, of a turn or of a called flow, the latest of their roles, in this order."""
        for known in (self.latest_handoffs, self.shown_handoffs)[: 2 if shown else 1]:
            for role, handoff in handoffs.items():
                known.pop(role, None)
                known[role] = handoff

    def input_handoff(self, item: Json | None) -> Json | None:
        """What an ask starts from: the previous handoff and, by its name, its item; with neither, the inputs."""
        before = next(reversed(self.latest_handoffs.values()), None)
        return {**(before or {}), **(item or {})} or dict(self.inputs) or None

    def leave(self, step_id: str, output: Json, error: str = "") -> None:
        """Store the result of the visit."""
        step = self.steps[step_id]
        step.output, step.error = output, error
        step.status = "failed" if error else "done"

    def set_vars(self, step: StepSpec, source: str) -> None:
        """Set the variables in the step's ``set``; all values are rendered before any variable changes."""
        self.vars |= {
            name: render(value, self.context(), f"{source}: step {step.id}: set.{name}")
            for name, value in step.set.items()
        }

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
