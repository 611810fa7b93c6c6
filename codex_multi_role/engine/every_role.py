"""The step that asks every role of the catalog, each after those it depends on have answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from graphlib import TopologicalSorter

from codex_multi_role.engine.askers import Scope
from codex_multi_role.engine.scheduler import Scheduler
from codex_multi_role.flow import steps_per_ask
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps import Ask, Recorder, StepOutcome, payload_from


class EveryRole:
    """One round of asks. After a role says DONE or fails, no further role starts."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._catalog = scope.run.catalog
        self._dependencies = self._catalog.dependencies()
        self._order = list(TopologicalSorter(self._dependencies).static_order())
        self._tests = scope.state.latest_tests
        self._outcomes: dict[str, StepOutcome] = {}

    def outcomes(self) -> tuple[list[StepOutcome], BaseException | None]:
        """The available outcomes, dependencies first, and the first failure."""
        works = {role: partial(self._ask, *self._reserve(role)) for role in self._dependencies}
        needs = [[self._order.index(each) for each in self._dependencies[role]] for role in self._order]
        scheduler = Scheduler[StepOutcome]("role", len(self._order), needs, is_last=lambda outcome: outcome.done)
        return scheduler.run([works[role] for role in self._order])

    def _reserve(self, role: str) -> tuple[Ask, Recorder]:
        """Drawn before any role works: its number, process, thread and slots in the journal."""
        ids = self._scope.ids.reserve(steps_per_ask(self._catalog.role(role)))
        return self._scope.asker.reserve(role, self._scope.state), ids.record

    def _ask(self, reserved: Ask, record: Recorder) -> StepOutcome:
        """The role is read only now, because it may be edited while others work."""
        role = self._scope.run.catalog.role(reserved.role.name)
        payload = payload_from(self._handoffs_for(role.name) or self._before)
        question = replace(reserved, role=role, payload=payload, tests=self._tests, tolerate=role.optional)
        outcome = self._scope.asker.ask(replace(question, may_decline=True), record)
        self._tests = outcome.tests or self._tests
        self._outcomes[role.name] = outcome
        return outcome

    @property
    def _before(self) -> dict[str, Json]:
        """The latest handoffs of those that no other role needs, for a role that needs none."""
        needed = {each for needs in self._dependencies.values() for each in needs}
        latest = self._scope.state.latest_handoffs
        return {role: latest[role] for role in self._dependencies if role not in needed and role in latest}

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
    def output(outcomes: Sequence[StepOutcome]) -> tuple[Json, str]:
        """What templates see of the round: ``results`` in the order of the roles, and who ``declined``; no error."""
        turns = [each.turn for each in outcomes if each.turn is not None]
        declined = [f"{each.role} declined: {each.reason}" for each in turns if each.declined]
        return {"results": [each.handoff for each in turns], "declined": declined}, ""
