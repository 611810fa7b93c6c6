"""Who is asked, and where: the process, thread and number of every ask of a walk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codex_multi_role.catalog import StepSpec
from codex_multi_role.engine.journal_slots import JournalSlots
from codex_multi_role.engine.leases import Instances, Leases
from codex_multi_role.flow import FlowState
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps import (
    NEW_THREAD,
    Ask,
    AskResult,
    RunResources,
    Unit,
    ask,
    payload_from,
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

    def ask(self, unit: Unit, state: FlowState) -> AskResult:
        """Ask the step's role. It starts from the step's `with`, otherwise from the previous handoff."""
        name = unit.step.ask or ""
        role = role_for(self._run.catalog.role(name), unit.step, unit.prompt)
        tolerate = unit.tolerate or role.optional
        answered = ask(
            self._run,
            Ask(
                role=role,
                instance=self._leases.instance(name),
                payload=unit.payload or state.input_handoff(self._item),
                tests=state.latest_tests,
                earlier=state.latest_handoffs.get(name),
                visit=self._number or state.next_ask(name),
                cycle=state.cycle,
                thread=self._thread(name, unit.step),
                tolerate=tolerate,
                copy=unit.key if unit.step.isolate else "",
                unit=unit.key,
            ),
            unit.record,
        )
        if answered.thread_id and not unit.step.isolate:
            self._threads[name] = answered.thread_id
            self._leases.move(name, answered.instance)
        return answered

    def _thread(self, role: str, step: StepSpec) -> str:
        """The thread to ask on. A copy of the workspace needs its own thread, because a thread works in one folder."""
        if step.isolate:
            return NEW_THREAD
        return self._threads.get(role, NEW_THREAD)

    def question(
        self, name: str, state: FlowState, ids: JournalSlots
    ) -> Callable[[dict[str, Json], Json | None], AskResult]:
        """The ask of one role of a team. Its number is drawn now, its input is given later.

        The role is read when it is asked, because it may be edited while others take their turns.
        """
        number, cycle, earlier = state.next_ask(name), state.cycle, state.latest_handoffs.get(name)
        instance, thread = self._leases.instance(name), self._threads.get(name, NEW_THREAD)

        def ask_role(handoffs: dict[str, Json], tests: Json | None) -> AskResult:
            role = self._run.catalog.role(name)
            question = Ask(
                role=role,
                instance=instance,
                payload=payload_from(handoffs),
                tests=tests,
                earlier=earlier,
                visit=number,
                cycle=cycle,
                thread=thread,
                tolerate=role.optional,
                may_decline=True,
            )
            answered = ask(self._run, question, ids.record)
            if answered.thread_id:
                self._threads[name] = answered.thread_id
            return answered

        return ask_role
