"""The paths through a shipped flow: what its roles, checks and a person say, and the steps that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from codex_multi_role.catalog import FlowSpec
from codex_multi_role.lifecycle.team_loading import CheckedTeam, load_team
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.shipped import packaged_roles
from tests.support.scripted import Play, Script, Walked, routes_of

Plays = Mapping[str, Sequence[Play]]
"""What roles answer: see `Script`."""
Results = Mapping[str, Sequence[Json]]
"""What checks return, by their step: see `Script`."""


@dataclass(frozen=True)
class Case:
    """``path``: the flow's own steps, in order. ``checks``, ``plays``: what differs from the rest of its system.

    ``answers``: to the reviews, see `Script`.
    """

    flow: str
    path: str
    outcome: str
    exit_code: int
    checks: Results = field(default_factory=dict)
    plays: Plays = field(default_factory=dict)
    answers: Sequence[tuple[bool, str]] = ()
    inputs: Json = field(default_factory=dict)


_WALKED: dict[tuple[str, str], Walked] = {}
"""By the system's flow and the case's name, what this process has walked."""


@dataclass(frozen=True)
class System:
    """A flow and those that it calls. ``checks``: what they return unless a case says otherwise, by flow."""

    flow: str
    checks: Mapping[str, Results]
    plays: Plays
    cases: Mapping[str, Case]

    def check(self, name: str, folder: Path) -> Walked:
        """Walk the case ``name``: its steps, its end, and that a suggested fork starts at a step that was taken."""
        case = self.cases[name]
        walked = _WALKED[self.flow, name] = self._walk(case, folder)
        path, ending = [step for step in walked.path if "/" not in step], walked.ending
        assert path == case.path.split(), ending.reason
        assert (ending.outcome, ending.exit_code) == (case.outcome, case.exit_code), ending.reason
        command, _, start = ending.suggestion.rpartition(" --from ")
        assert command != "fork RUN" or start.partition(":")[0] in path
        return walked

    def unwalked(self, folder: Path) -> set[str]:
        """The routes of the system's flows that none of its cases takes."""
        walks = [_WALKED.get((self.flow, name)) or self._walk(case, folder) for name, case in self.cases.items()]
        return routes_of(*shipped_team(self.flow)[0].values()).difference(*(walked.routes for walked in walks))

    def _walk(self, case: Case, folder: Path) -> Walked:
        flows, catalog = shipped_team(case.flow)
        checks, plays = {**self._results(flows[case.flow]), **case.checks}, {**self.plays, **case.plays}
        return Script(folder, plays, checks, case.answers).walk_loaded(case.flow, flows, catalog, case.inputs)

    def _results(self, flow: FlowSpec) -> Results:
        called = {step.id: self.checks[step.call] for step in flow.steps if step.call}
        below = {f"{step}/{name}": given for step, results in called.items() for name, given in results.items()}
        return {**self.checks[flow.name], **below}


@cache
def shipped_team(flow: str) -> CheckedTeam:
    """As it is read once per process: for `testgen`, that takes half a second."""
    return load_team(flow, packaged_roles())
