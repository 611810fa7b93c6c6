"""Running a flow durably: every turn, repair and check is one recorded step of a DBOS workflow.

The workflow decides from recorded results alone, so that a replay takes the same way; clocks, files and processes are
touched in recorded steps only.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from dbos import DBOS

from codex_multi_role.catalog import FlowSpec, StepSpec
from codex_multi_role.ending import Ending, ending_for
from codex_multi_role.engine.halt import RunHalted
from codex_multi_role.engine.team import Team
from codex_multi_role.errors import RunInterrupted
from codex_multi_role.flow import End, FlowState, after
from codex_multi_role.options import MOST_REPAIRS
from codex_multi_role.run_folder.events import StepStarted
from codex_multi_role.steps import Answered, Ask, Json, RunResources, ask, check, payload_from

EVERY_ROLE = "*"
STEPS_PER_ASK = MOST_REPAIRS + 6


class _Block:
    """A row of step ids drawn from the journal up front, so that concurrent asks keep their places in it."""

    def __init__(self, size: int, announce: Callable[[], None], stopping: Callable[[], bool]) -> None:
        self._reserved = iter([DBOS.reserve_step() for _ in range(size)])
        self._announce = announce
        self._stopping = stopping

    def record(self, name: str, work: Callable[[], Json]) -> Json:
        """Run ``work`` once and for all (the `Recorder` of the steps); what it raises halts the run, unrecorded."""

        def guarded() -> Json:
            try:
                if self._stopping():
                    raise RunInterrupted
                self._announce()
                return work()
            except Exception as error:
                raise RunHalted(ending_for(error)) from error

        return next(self._reserved).run({"name": name}, guarded)


class DurableRun:
    """One run: the flow's definition, its live parts, and the state that a replay rebuilds.

    ``ending`` is resolved when the workflow halts in this process.
    """

    def __init__(self, flow: FlowSpec, state: FlowState, run: RunResources) -> None:
        self._flow = flow
        self._run = run
        self._announced = ("", 0)
        self.state = state
        self.ending: Future[Ending] = Future()

    def work(self) -> None:
        """The body of the workflow: the whole flow.

        It always halts: how a run ended is known from ``run.json``, the journal holds its steps.
        """
        try:
            halt = RunHalted(self._walk())
        except RunHalted as early:
            halt = early
        except Exception as error:
            halt = RunHalted(ending_for(error))
        self.ending.set_result(halt.ending)
        raise halt

    def _walk(self) -> Ending:
        step = self._flow.steps[0]
        while True:
            visit = self.state.enter(step.id)
            self._take_step(step, visit)
            if self.state.finished_by:
                return self._done()
            move = after(self._flow, step, self.state)
            if isinstance(move, End):
                status = "succeeded" if move.exit_code == 0 else "ended"
                reason = f"the flow {self._flow.name} ended at {step.id}, in cycle {self.state.cycle}: {move.outcome}"
                return Ending(status, move.outcome, reason, move.exit_code)
            step = move.step

    def _done(self) -> Ending:
        """A role that may finish said DONE; a green light needs green tests as well."""
        said = f"{self.state.finished_by} said DONE"
        tests = self.state.latest_tests
        if tests is None or tests["status"] in ("passed", "no tests"):
            return Ending("succeeded", "done", said, 0)
        reason = f"{said}, but the latest test result is: {tests['status']} (tests/{tests['number']:03d})"
        return Ending("ended", "tests_failed", reason, 1)

    def _take_step(self, step: StepSpec, visit: int) -> None:
        if step.ask == EVERY_ROLE:
            self._ask_every_role(step, visit)
        elif step.ask is not None:
            self._ask_one_role(step, visit, step.ask)
        else:
            self._check(step, visit)

    def _check(self, step: StepSpec, visit: int) -> None:
        output = check(self._run, step, self.state.context(), visit, self._block(step, visit, 1).record)
        if step.check == "tests":
            self.state.latest_tests = output
        self.state.leave(step.id, output)

    def _ask_one_role(self, step: StepSpec, visit: int, role: str) -> None:
        previous = self.state.history[-1].role if self.state.history else None
        handoffs = {previous: self.state.latest_handoffs[previous]} if previous else {}
        answer = self._asker(step, visit, [role])(role, handoffs, self.state.latest_tests)
        self._absorb(answer)
        self.state.leave(step.id, answer.handoff or {}, answer.error)

    def _ask_every_role(self, step: StepSpec, visit: int) -> None:
        dependencies = self._run.catalog.dependencies()
        team = Team(dependencies, self.state.latest_tests)
        ask_role = self._asker(step, visit, list(dependencies))
        needed = {each for needs in dependencies.values() for each in needs}
        last = [role for role in dependencies if role not in needed]
        before = {role: self.state.latest_handoffs[role] for role in last if role in self.state.latest_handoffs}
        answers = team.work(lambda role, handoffs, tests: ask_role(role, handoffs or before, tests))
        for answer in answers:
            self._absorb(answer)
        team.raise_failure()
        self.state.leave(step.id, {"results": [answer.handoff for answer in answers]})

    def _asker(
        self, step: StepSpec, visit: int, roles: list[str]
    ) -> Callable[[str, dict[str, Json], Json | None], Answered]:
        """Asks any of ``roles``, each in a block of its own and under the number of its ask."""
        blocks = {role: self._block(step, visit, STEPS_PER_ASK) for role in roles}
        numbers = {role: self.state.next_ask(role) for role in roles}
        cycle = self.state.cycle

        def ask_role(name: str, handoffs: dict[str, Json], tests: Json | None) -> Answered:
            role = self._run.catalog.role(name)
            earlier = self.state.latest_handoffs.get(name)
            question = Ask(
                role, name, payload_from(handoffs), tests, earlier, numbers[name], cycle, tolerate=role.optional
            )
            return ask(self._run, question, blocks[name].record)

        return ask_role

    def _absorb(self, answer: Answered) -> None:
        if answer.tests is not None:
            self.state.latest_tests = answer.tests
        if answer.handoff is not None:
            self.state.absorb_handoff(answer.role, answer.instance, answer.turn, answer.handoff)
        if answer.done and not self.state.finished_by:
            self.state.finished_by = answer.role

    def _block(self, step: StepSpec, visit: int, size: int) -> _Block:
        cycle = self.state.cycle

        def announce() -> None:
            if self._announced != (step.id, visit):
                self._announced = (step.id, visit)
                self._run.events.publish(StepStarted(step.id, visit, cycle))

        return _Block(size, announce, self._run.stopping.is_set)
