"""Who is asked, and where: the process, thread and number of every ask of a walk.

A step may ask every role of the catalog, each after those it depends on have answered.
"""

from __future__ import annotations

import copy
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from codex_multi_role.catalog import StepSpec
from codex_multi_role.codex.fleet import instance_name
from codex_multi_role.engine.journal_slots import ItemCancelled, JournalSlots
from codex_multi_role.engine.scheduler import Scheduler
from codex_multi_role.flow import AnswerWays, FlowState, steps_per_ask
from codex_multi_role.flow.fan_out_items import step_of_item
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps import NEW_THREAD, Recorder, RunResources, StepOutcome, Unit
from codex_multi_role.steps.ask import Ask, ask, payload_from, role_for

Outcomes = tuple[list[StepOutcome], BaseException | None]
"""Of a step, and its first failure."""


class Instances:
    """All processes of a run: ``role``, then ``role.2``, ``role.3`` … as more are needed at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # waits: for memory only
        self._taken: dict[str, set[int]] = defaultdict(set)

    def take(self, role: str, preferred: str = "") -> str:
        """Take the ``preferred`` process of the role if it is free, otherwise the lowest free one."""
        with self._lock:
            taken = self._taken[role]
            number = _number(preferred) if preferred else 1
            if number in taken:
                number = next(each for each in range(1, len(taken) + 2) if each not in taken)
            taken.add(number)
        return instance_name(role, number)

    def give_back(self, role: str, instance: str) -> None:
        with self._lock:
            self._taken[role].discard(_number(instance))


def _number(instance: str) -> int:
    _, _, last = instance.rpartition(".")
    return int(last) if last.isdigit() and "." in instance else 1


class Leases:
    """The processes that one walk has leased; a role keeps its process, and so its thread, until the walk ends."""

    def __init__(self, instances: Instances) -> None:
        self._instances = instances
        self._held: dict[str, str] = {}

    def instance(self, role: str) -> str:
        if role not in self._held:
            self._held[role] = self._instances.take(role)
        return self._held[role]

    def move(self, role: str, instance: str) -> None:
        """Hold ``instance`` from now on if it is free, because the thread of recorded work belongs to that process."""
        held = self._held.get(role)
        if held is not None and held != instance:
            self._instances.give_back(role, held)
            self._held[role] = self._instances.take(role, instance)

    def release(self) -> None:
        for role, instance in self._held.items():
            self._instances.give_back(role, instance)
        self._held.clear()


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

    def fork(self, run: RunResources, state: FlowState, step: StepSpec, item: Json | None) -> Asker:
        """The asker of one item, of which this is its content. The number of its ask is drawn now, in item order."""
        number = state.next_ask(step.ask) if step.ask and not step.roles else 0
        return Asker(run, self._instances, item=item, number=number)

    def within(self, run: RunResources) -> Asker:
        """The asker of a called flow that works in a copy of the workspace: the same processes, threads of its own."""
        moved = copy.copy(self)
        moved._run, moved._threads = run, {}
        return moved

    def on(self, run: RunResources) -> Asker:
        """The same asker for a part of the run that can stop alone: the same processes and threads."""
        moved = copy.copy(self)
        moved._run = run
        return moved

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

    def ask_for(self, state: FlowState, unit: Unit) -> StepOutcome:
        """Ask the step's role. It starts from the step's `with`, otherwise from the previous handoff.

        A copy of the workspace needs a new thread, because a thread works in one folder.
        """
        step_of_item(unit.step, unit.context, unit.place)  # fails if none of its roles was chosen
        prompt = unit.text("prompt") if unit.step.prompt is not None else ""
        payload = unit.fill("with")  # before a number is drawn, as a failed template must not draw one
        reserved = self.reserve(unit.step.ask or "", state)
        ways = AnswerWays(self._run.settings.contracts)
        role, task = role_for(reserved.role, unit.step, prompt)
        question = replace(
            reserved,
            role=role,
            task=task,
            payload=payload or state.input_handoff(self._item, unit.step.prompt),
            tests=state.latest_tests,
            thread=NEW_THREAD if unit.step.isolate else reserved.thread,
            tolerate=unit.tolerate or reserved.role.optional,
            copy=unit.key if unit.step.isolate else "",
            unit=unit.key,
            expected=ways.expected(state.flow, unit.step, reserved.role, unit.context),
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


class EveryRole:
    """One round of asks. After a role says DONE or fails, no further role starts.

    ``within`` runs the round, and ends it at the limit of the step.
    """

    def __init__(self, scope: Scope, step: StepSpec, within: Callable[[Callable[[], Outcomes]], Outcomes]) -> None:
        self._scope, self._step, self._within = scope, step, within
        self._catalog = scope.run.catalog
        self._dependencies = self._catalog.dependencies()
        self._order = self._catalog.in_order()
        self._tests = scope.state.latest_tests
        self._outcomes: dict[str, StepOutcome] = {}
        self._is_over = False

    def outcomes(self) -> Outcomes:
        """The available outcomes, dependencies first, and the first failure."""
        return self._within(self._round)

    def _round(self) -> Outcomes:
        works = {role: partial(self._ask, *self._reserve(role)) for role in self._dependencies}
        needs = [[self._order.index(each) for each in self._dependencies[role]] for role in self._order]
        cancel_rest = self._end if self._scope.ids.keeps_failures else None
        scheduler = Scheduler[StepOutcome]("role", len(self._order), needs, lambda outcome: outcome.done, cancel_rest)
        return scheduler.run([works[role] for role in self._order])

    def _reserve(self, role: str) -> tuple[Ask, Recorder]:
        """Drawn before any role works: its number, process, thread and slots in the journal."""
        ids = self._scope.ids.reserve(steps_per_ask(self._catalog.role(role)))
        return self._scope.asker.reserve(role, self._scope.state), ids.cancellable(self._cancelled).record

    def _end(self) -> None:
        self._is_over = True

    def _cancelled(self) -> ItemCancelled | None:
        return ItemCancelled("", "another role failed") if self._is_over else None

    def _ask(self, reserved: Ask, record: Recorder) -> StepOutcome:
        """The role is read only now, because it may be edited while others work."""
        role = self._scope.run.catalog.role(reserved.role.name)
        before = self._catalog.not_waited_for(self._scope.state.latest_handoffs)
        payload = payload_from(self._handoffs_for(role.name) or before)
        question = replace(reserved, role=role, payload=payload, tests=self._tests, tolerate=role.optional)
        run, state = self._scope.run, self._scope.state
        expected = AnswerWays(run.settings.contracts).expected(state.flow, self._step, role, state.context())
        try:
            outcome = self._scope.asker.ask(replace(question, may_decline=True, expected=expected), record)
        except ItemCancelled as cancelled:
            if cancelled.unit:  # an enclosing item was
                raise
            outcome = StepOutcome({}, cancelled.reason, skipped=True)
        self._tests = outcome.tests or self._tests
        self._outcomes[role.name] = outcome
        return outcome

    def _handoffs_for(self, role: str) -> dict[str, Json]:
        """What ``role`` builds on. A failed optional role is replaced by what it was to build on."""
        found: dict[str, Json] = {}
        for dependency in self._dependencies[role]:
            turn = self._outcomes[dependency].turn
            if turn is not None and turn.handoff is not None:
                found[dependency] = turn.handoff
            else:
                found |= self._handoffs_for(dependency)
        return found

    @staticmethod
    def output(outcomes: Sequence[StepOutcome]) -> tuple[Json, str, str]:
        """What templates see of the round: ``results`` in the order of the roles, and who ``declined``; no error."""
        turns = [each.turn for each in outcomes if each.turn is not None]
        declined = [f"{each.role} declined: {each.reason}" for each in turns if each.declined]
        return {"results": [each.handoff for each in turns], "declined": declined}, "", ""
