"""Flows walked without any process: roles, checks and a person answer by a script, and the journal is in memory.

For what decides the path through a flow: routes, variables, retries, needs, bounds. A walk takes milliseconds.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import pytest

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog, RouteSpec, StepSpec
from codex_multi_role.catalog.templates import evaluate
from codex_multi_role.checks import CheckContext, RunFacts, find_check
from codex_multi_role.engine import CallableFlows, DurableRun
from codex_multi_role.engine.journal_slots import RecordedStep
from codex_multi_role.engine.rehearsal import PastUnits, walk_past
from codex_multi_role.errors import (
    CheckFailed,
    CodexMultiRoleError,
    DefinitionError,
    Ending,
    RoleFailed,
    RunInterrupted,
)
from codex_multi_role.flow import End, FlowState, GoTo, after, new_state, walk_bound
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.lifecycle.team_loading import ADDED, CheckedTeam, load_team
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Answer, AskPerson, EventLog, Question, RunFolder
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_folder.typed_answers import complete
from codex_multi_role.run_options import RunOptions
from codex_multi_role.steps import Recorder, RunProgress, RunResources, RunServices, RunSettings, StepOutcome, Unit
from codex_multi_role.steps.ask import Ask
from codex_multi_role.steps.carry_out import carry_out
from codex_multi_role.steps.check_context import terms
from codex_multi_role.steps.resources import TestSettings
from codex_multi_role.steps.turn_events import says_done
from codex_multi_role.steps.turn_record import TurnResult
from codex_multi_role.steps.work_clock import WorkClock
from codex_multi_role.workspace import Workspace
from tests.support.prices import NO_PRICES
from tests.support.teams import TeamFolder, with_flow

Play = Json | RoleFailed | RunInterrupted | Callable[[Ask], Json | RoleFailed | RunInterrupted]
"""A handoff, a failure, or what makes one of the ask."""
Result = Json | CodexMultiRoleError | Callable[[Unit], Json | CodexMultiRoleError]
"""The result of a check, a failure, or what makes one of the unit."""
T = TypeVar("T")
FAILS = RoleFailed("role one: no", "bad_request")
BREAKS = CheckFailed("the check could not run")
WAITS = RunInterrupted()
"""Of a role or a check that works until it is stopped."""
MAX_WAIT_SECONDS = 60.0
COMPUTED = ("answer", "choose", "command", "merge_items", "schema")
"""Checks that are carried out where no result is scripted: they change nothing in a workspace."""


class Said(NamedTuple):
    """What a person answers; ``values``: of the fields, and the ``option``."""

    approved: bool = True
    comment: str = ""
    values: Json | None = None

    def to(self, question: Question) -> Answer:
        return complete(question, Answer(self.approved, self.comment, "a person", now(), values=self.values or {}))


@dataclass
class Journal:
    """``records`` by position, in the order in which they were made; ``works``: what was done for each.

    ``done``: all of that, and what failed without a record.
    """

    records: dict[int, RecordedStep] = field(default_factory=dict)
    works: dict[int, list[str]] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    _here: threading.local = field(default_factory=threading.local)

    def slots(self) -> Iterator[_KeptSlot]:
        return (_KeptSlot(self, number) for number in count(1))

    def find(self, place: int, name: str) -> Json | None:
        if place not in self.records:
            self._here.works = []
            return None
        assert self.records[place].name == name
        return dict(self.records[place].output)

    def add(self, place: int, name: str, result: Json) -> Json:
        self.works[place], self._here.works = self._here.works, []
        self.records[place] = RecordedStep(name, json.loads(json.dumps(result)))
        return dict(self.records[place].output)

    def note(self, work: str) -> None:
        if hasattr(self._here, "works"):  # final checks are not recorded
            self._here.works.append(work)
        self.done.append(work)

    def until(self, number: int) -> Journal:
        """What a kill after so many records would leave."""
        kept = list(self.records)[:number]
        works = {place: self.works[place] for place in kept}
        return Journal({place: self.records[place] for place in kept}, works, [*chain(*works.values())])


@dataclass(frozen=True)
class Walked:
    """``asks`` in the order in which they were made; ``warnings``: what was published as such.

    ``path``: the steps in the order in which they started, those of called flows as ``<calling step>/<step>``.
    ``routes``: those that were taken, as `routes_of` names them. ``rehearse`` walks what was recorded once more.
    """

    ending: Ending
    state: FlowState
    asks: list[Ask]
    warnings: list[str]
    path: list[str]
    routes: set[str]
    rehearse: Callable[[], PastUnits]


@dataclass
class Script:
    """``plays``: what each role answers, by the number of the ask; the last one answers all further asks.

    ``checks``: what each check returns, by its step as in `Walked.path`, and by the number of its call in the same way.
    Without an entry, a check of ``computed``, which only computes its result, is carried out. ``merges``: what merging
    a copy results in, likewise by step, by default without conflicts.
    ``answers``: to the reviews, in order, each as in `Said`; nobody is present after the last one. In a mapping, those
    to the reviews of each step, like ``checks``.
    ``finishing``: the roles that may say DONE. ``judged``: answers that later steps cannot use are refused.
    ``journal``: what an earlier walk recorded, which is not done again.
    """

    folder: Path
    plays: Mapping[str, Sequence[Play]]
    checks: Mapping[str, Sequence[Result]] = field(default_factory=dict)
    answers: Sequence[tuple[bool, str] | Said] | Mapping[str, Sequence[tuple[bool, str] | Said]] = ()
    merges: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    finishing: Collection[str] = ()
    judged: bool = False
    computed: Collection[str] = COMPUTED
    journal: Journal = field(default_factory=Journal)
    asks: list[Ask] = field(default_factory=list)
    _routes: set[str] = field(default_factory=set)
    _checked: Counter[str] = field(default_factory=Counter)
    _merged: Counter[str] = field(default_factory=Counter)
    _answered: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._answers_left = iter(self.answers)

    def walk(self, flow: Json, *called: Json, inputs: Json | None = None, cycles: int = 1) -> Walked:
        """Walk ``flow``, which may call the others by their ``name``. Raises `DefinitionError` for a wrong flow."""
        return self.walk_loaded("own", *self.team(flow, *called), inputs, cycles)

    def team(self, flow: Json, *called: Json) -> CheckedTeam:
        """What `walk` walks, to walk it several times."""
        team = TeamFolder(self.folder, {role: self._role(role) for role in self.plays}, {})
        with_flow(team, flow)
        for each in called:
            with_flow(team, {key: value for key, value in each.items() if key != "name"}, each["name"])
        return load_team("own", team.folder / "roles")

    def walk_loaded(
        self,
        name: str,
        flows: Mapping[str, FlowSpec],
        catalog: RoleSpecCatalog,
        inputs: Json | None,
        cycles: int = 1,
        contracts: Contracts | None = None,
    ) -> Walked:
        """Walk the flow ``name`` of ``flows``, which hold those that it calls. ``contracts``: theirs, if known."""
        given = flows[name].resolve_inputs(inputs or {})
        limits = terms(RunOptions(cycles=cycles, repair_attempts=0, run_tests=False))
        bound = cache(lambda most: walk_bound(flows, name, catalog, limits, given))
        folder = RunFolder.create(self.folder / "runs")
        events, published = EventLog(folder.events_path, folder.redact), list[Json]()
        events.subscribe(published.append)
        services = _Services(lambda: catalog, folder, events, WorkClock(0.0), self._person)
        run = self._resources(services, contracts or Contracts(flows, name, catalog.roles, ADDED))
        called, new = CallableFlows(flows, bound), partial(new_state, flows[name], "reach it", given, cycles)
        durable = DurableRun(called, new(), run)
        with self._patched(), closing(events):
            durable.work(self.journal.slots())
        warnings = [event["message"] for event in published if event["type"] == "warning"]
        path = [_without_numbers(event["step"]) for event in published if event["type"] == "step_started"]

        def rehearse() -> PastUnits:
            with self._patched():
                return walk_past(called, new(), run, self.journal.records)

        return Walked(durable.ending.result(0), durable.state, self.asks, warnings, path, self._routes, rehearse)

    def _role(self, name: str) -> Json:
        return {"behaviors": {"can_finish": True}} if name in self.finishing else {}

    @staticmethod
    def _resources(services: _Services, contracts: Contracts) -> RunResources:
        settings = RunSettings(
            "reach it", TestSettings(False, None, 0.0, cast(Any, None)), 0, None, NO_PRICES, False, contracts=contracts
        )
        return RunResources(settings, cast(RunServices, services), RunProgress(), cast(Any, None), cast(Any, None))

    @contextmanager
    def _patched(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("codex_multi_role.engine.askers.ask", self._answer)
            patch.setattr("codex_multi_role.engine.flow_walk.after", self._after)
            patch.setattr(sys.modules[carry_out.__module__], "_pause", lambda *_: {})
            patch.setattr("codex_multi_role.steps.check._carry_out", self._check)
            patch.setattr("codex_multi_role.steps.unit._merge", self._merge)
            patch.setattr("codex_multi_role.steps.unit._place", lambda _, key: self.folder / key)
            patch.setattr(RunResources, "in_copy", lambda run, _, **__: run)
            yield

    def _answer(self, run: RunResources, question: Ask, record: Recorder) -> StepOutcome:
        self.asks.append(question)
        with record(f"{question.role.name} turn") as work:
            if work.is_due:
                work.result = self._turn(run, question).as_json()
        turn = TurnResult(**work.result)
        handoff = turn.handoff or {}
        done = question.role.behaviors.can_finish and says_done(handoff)
        return StepOutcome(handoff, turn.problem, turn, done)

    def _turn(self, run: RunResources, question: Ask) -> TurnResult:
        role = question.role.name
        self.journal.note(f"{question.unit} {role} {question.visit}")
        play = _nth(self.plays[role], question.visit)
        handoff = play(question) if callable(play) else play
        if isinstance(handoff, RunInterrupted):
            assert run.progress.stopping.wait(MAX_WAIT_SECONDS)
            raise handoff
        if self.judged and not isinstance(handoff, RoleFailed) and not says_done(handoff):
            problems = question.expected.problems(handoff)
            handoff = RoleFailed(f"role {role}: {problems}", "invalid_reply") if problems else handoff
        if isinstance(handoff, RoleFailed):
            if not question.tolerate:
                raise handoff
            return TurnResult(role, question.instance, 0, "", "failed", handoff.reason, str(handoff))
        thread = f"thread of {question.instance}"
        return TurnResult(role, question.instance, question.visit, thread, "completed", "completed", "", handoff)

    def _check(self, run: RunResources, unit: Unit, _place: int, options: Mapping[str, object]) -> Json:
        step, name = _without_numbers(unit.key), unit.step.check or ""
        if step not in self.checks and name in self.computed:
            return self._computed(name, options)
        self._checked[step] += 1
        result = _nth(self.checks[step], self._checked[step])
        self.journal.note(f"{unit.key} {unit.attempt}")
        result = result(unit) if callable(result) else result
        if result is WAITS:
            assert run.progress.stopping.wait(MAX_WAIT_SECONDS)
        if isinstance(result, CodexMultiRoleError):
            raise result
        return {"status": "", **result}

    def _computed(self, name: str, options: Mapping[str, object]) -> Json:
        facts = RunFacts("run", "flow", now(), self.folder, "", ())
        workspace = Workspace(self.folder)
        return find_check(name)(CheckContext(workspace, self.folder, {}, 60.0, options=options, run=lambda: facts))

    def _merge(self, _: RunResources, key: str) -> Json:
        step = _without_numbers(key)
        self._merged[step] += 1
        merges = self.merges.get(step) or [{}]
        return {"status": "merged", "paths": [], "conflicts": [], **_nth(merges, self._merged[step])}

    def _person(self, question: Question, _: object) -> Answer | None:
        if isinstance(self.answers, Mapping):
            step = _without_numbers(question.key)
            self._answered[step] += 1
            return Said(*_nth(self.answers[step], self._answered[step])).to(question)
        answer = next(self._answers_left, None)
        return Said(*answer).to(question) if answer else None

    def _after(self, flow: FlowSpec, step: StepSpec, state: FlowState) -> GoTo | End:
        move, context = after(flow, step, state), state.context()
        taken = (route for route in step.next if route.when is None or evaluate(route.when, context, ""))
        with suppress(DefinitionError):  # a field that a bad result does not have
            self._routes.add(_route(flow, step, next(taken, None)))
        return move


def routes_of(*flows: FlowSpec) -> set[str]:
    """The routes after the steps of ``flows``, those to the following step included."""
    every = ((flow, step, route) for flow in flows for step in flow.steps for route in (*step.next, None))
    return {_route(*each) for each in every if each[2] is not None or _falls_through(each[1])}


def _falls_through(step: StepSpec) -> bool:
    return not step.next or step.next[-1].when is not None


def _route(flow: FlowSpec, step: StepSpec, route: RouteSpec | None) -> str:
    target = (route.to or f"end {route.end}") if route else "the following step"
    return f"{flow.name}: {step.id} -> {target}{f' if {route.when}' if route and route.when else ''}"


def _nth(given: Sequence[T], number: int) -> T:
    return given[min(number, len(given)) - 1]


def _without_numbers(key: str) -> str:
    """The step of a unit: ``batch_execution/judge`` of ``batch_execution.1.0/try-2/judge.2``."""
    return re.sub(r"(\.\d+)+(?=/|$)|/try-\d+(?=/)", "", key)


@dataclass(frozen=True)
class _Baseline:
    """There are no tests."""

    is_measured: bool = False
    rewinds: bool = False

    def wait(self, _: object) -> None: ...

    def stopped(self) -> _Baseline:
        return self


@dataclass(frozen=True)
class _Copies:
    """A run without copies."""

    def discard(self, key: str) -> None: ...


@dataclass(frozen=True)
class _Services:
    """Those of `RunServices` that a walk itself uses."""

    catalog_now: Callable[[], object]
    folder: RunFolder
    events: EventLog
    clock: WorkClock
    ask_person: AskPerson
    states: None = None
    save: Callable[[], None] = lambda: None
    baseline: _Baseline = _Baseline()
    worktrees: _Copies = _Copies()


@dataclass(frozen=True)
class _KeptSlot:
    journal: Journal
    step_id: int

    def find(self, name: str, /) -> Json | None:
        return self.journal.find(self.step_id, name)

    def add(self, name: str, result: Json, /) -> Json:
        return self.journal.add(self.step_id, name, result)
