"""Flows walked without any process: what the roles answer comes from a script, and the journal is in memory.

For what decides the way through a flow: routes, variables, retries, needs, bounds. A walk takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from codex_multi_role.engine import CallableFlows, DurableRun
from codex_multi_role.engine.journal_slots import RunHalted
from codex_multi_role.errors import Ending, RoleFailed
from codex_multi_role.flow import FlowState, new_state, walk_bound
from codex_multi_role.lifecycle.definitions import load_catalog, load_flow_and_called
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import EventLog, RunFolder
from codex_multi_role.steps import Ask, Recorder, RunProgress, RunResources, RunServices, RunSettings, StepOutcome
from codex_multi_role.steps.check import terms
from codex_multi_role.steps.turn_record import TurnResult
from tests.support.teams import TeamFolder, with_flow

Play = Json | RoleFailed | Callable[[Ask], Json]
"""A handoff, a failure, or what makes a handoff of the ask."""
FAILS = RoleFailed("role one: no", "bad_request")


@dataclass(frozen=True)
class Walked:
    """``asks`` in the order in which they were made; ``warnings``: what was published as such."""

    ending: Ending
    state: FlowState
    asks: list[Ask]
    warnings: list[str]


@dataclass
class Script:
    """``plays``: what each role answers, by the number of the ask; the last one answers all further asks."""

    folder: Path
    plays: Mapping[str, Sequence[Play]]
    asks: list[Ask] = field(default_factory=list)

    def walk(self, flow: Json, *called: Json, inputs: Json | None = None, cycles: int = 1) -> Walked:
        """Walk ``flow``, which may call the others by their ``name``. Raises `DefinitionError` for a wrong flow."""
        team = TeamFolder(self.folder, {role: {} for role in self.plays}, {})
        with_flow(team, flow)
        for each in called:
            with_flow(team, {key: value for key, value in each.items() if key != "name"}, each["name"])
        flows, catalog = load_flow_and_called("own", load_catalog(team.folder / "roles"))
        given = flows["own"].resolve_inputs(inputs or {})
        limits = terms(cycles=cycles, repair_attempts=0, run_tests=False, test_seconds=0.0)
        bound = cache(lambda most: walk_bound(flows, "own", catalog, limits, given))
        folder = RunFolder.create(team.runs)
        events, warnings = EventLog(folder.events_path, folder.redact), list[str]()
        events.subscribe(lambda record: warnings.append(record["message"]) if record["type"] == "warning" else None)
        services = cast(RunServices, _Services(catalog_now=lambda: catalog, folder=folder, events=events, states=None))
        settings = RunSettings("reach it", cast(Any, None), 0, None, changes_workspace=False)
        run = RunResources(settings, services, RunProgress(), cast(Any, None), cast(Any, None))
        state = new_state(flows["own"], "reach it", given, cycles)
        durable = DurableRun(CallableFlows(flows, bound), state, run)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("codex_multi_role.engine.askers.ask", self._answer)
            patch.setattr("codex_multi_role.engine.journal_slots._drawn", _slots)
            with suppress(RunHalted):
                durable.work()
        events.close()
        return Walked(durable.ending.result(0), state, self.asks, warnings)

    def _answer(self, _: RunResources, question: Ask, record: Recorder) -> StepOutcome:
        self.asks.append(question)
        turn = TurnResult(**record(f"{question.role.name} turn", lambda _: self._turn(question).as_json()))
        return StepOutcome(turn.handoff or {}, turn.problem, turn)

    def _turn(self, question: Ask) -> TurnResult:
        role, plays = question.role.name, self.plays[question.role.name]
        play = plays[min(question.visit, len(plays)) - 1]
        if isinstance(play, RoleFailed):
            if not question.tolerate:
                raise play
            return TurnResult(role, question.instance, 0, "", "failed", play.reason, str(play))
        handoff = play(question) if callable(play) else play
        thread = f"thread of {question.instance}"
        return TurnResult(role, question.instance, question.visit, thread, "completed", "completed", "", handoff)


@dataclass(frozen=True)
class _Services:
    """Those of `RunServices` that a walk itself uses."""

    catalog_now: Callable[[], object]
    folder: RunFolder
    events: EventLog
    states: None


@dataclass(frozen=True)
class _Slot:
    step_id: int

    def run(self, _: object, work: Callable[[], Json], /) -> Json:
        return work()


def _slots() -> Iterator[_Slot]:
    return (_Slot(number) for number in count(1))
