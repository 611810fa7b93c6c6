"""Who is asked, and where: the process, thread and number of every ask of a walk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from codex_multi_role.catalog import StepSpec
from codex_multi_role.engine.journal_slots import JournalSlots
from codex_multi_role.engine.leases import Instances, Leases
from codex_multi_role.flow import FlowState
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps import (
    NEW_THREAD,
    Ask,
    Recorder,
    RunResources,
    StepOutcome,
    Unit,
    ask,
    role_for,
)


class Asker:
    """Asks roles on behalf of one walk, or of one item of a fan-out.

    The first walk of a run uses each role's first process and its single thread. An item works on a `fork`, with its
    own process for each role and its own threads, which remember only the asks of this item.
    """

    def __init__(self, run: RunResources, instances: Instances, *, item: Json | None = None, number: int = 0) -> None:
        self._run = run
        self._instances = instances
        self._leases = Leases(instances)
        self._item = item
        self._number = number
        self._threads: dict[str, str] = {}

    def fork(self, run: RunResources, state: FlowState, step: StepSpec, item: Any) -> Asker:  # noqa: ANN401
        """The asker of one ``item`` of any type. The number of its ask is drawn now, in item order."""
        number = state.next_ask(step.ask) if step.ask else 0
        return Asker(run, self._instances, item={step.as_: item}, number=number)

    def release(self) -> None:
        self._leases.release()

    def reserve(self, name: str, state: FlowState) -> Ask:
        """The next ask of a role, without its input: its number, process and thread are drawn now."""
        return Ask(
            role=self._run.catalog.role(name),
            instance=self._leases.instance(name),
            visit=self._number or state.next_ask(name),
            cycle=state.cycle,
            earlier=state.latest_handoffs.get(name),
            thread=self._threads.get(name, NEW_THREAD),
        )

    def ask(self, reserved: Ask, record: Recorder) -> StepOutcome:
        """Carry out a reserved ask, which has its input by now. The role's next ask continues its thread."""
        outcome = ask(self._run, reserved, record)
        turn = outcome.turn
        if turn is not None and turn.thread_id and not reserved.copy:
            self._threads[turn.role] = turn.thread_id
            self._leases.move(turn.role, turn.instance)
        return outcome

    def ask_for(self, unit: Unit, state: FlowState) -> StepOutcome:
        """Ask the step's role. It starts from the step's `with`, otherwise from the previous handoff.

        A copy of the workspace needs a new thread, because a thread works in one folder.
        """
        reserved = self.reserve(unit.step.ask or "", state)
        question = replace(
            reserved,
            role=role_for(reserved.role, unit.step, unit.prompt),
            payload=unit.payload or state.input_handoff(self._item),
            tests=state.latest_tests,
            thread=NEW_THREAD if unit.step.isolate else reserved.thread,
            tolerate=unit.tolerate or reserved.role.optional,
            copy=unit.key if unit.step.isolate else "",
            unit=unit.key,
        )
        return self.ask(question, unit.record)


@dataclass(frozen=True)
class Scope:
    """What a walk, or one item of its fan-out, has for itself.

    ``ids``: where its work is recorded; ``state`` collects what was asked and answered. ``run`` is stopping if this
    part of the run must stop. ``observe`` gets every unit and may wrap it; only a rehearsal uses it.
    """

    run: RunResources
    ids: JournalSlots
    asker: Asker
    state: FlowState
    observe: Callable[[Unit], Unit] = lambda unit: unit
