"""Compare what a bundle claims with what another run of it did, group by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from codex_multi_role.presentation.wording import plural
from codex_multi_role.proof.claims import ClaimedChange, ClaimedTests, ClaimedTurn, Environment, ObservedRun

SAME: Literal["same"] = "same"
DIFFERS: Literal["differs"] = "differs"
NOT_CHECKED: Literal["not checked"] = "not checked"
MAX_SHOWN = 20
"""Maximum lines of differences in one group: after the first one, the others often follow from it."""
Paths = Callable[[str, str], Sequence[str]]
"""Returns the files that differ between two states."""


@dataclass(frozen=True)
class ComparedLine:
    """One line of the result, without its status."""

    status: Literal["same", "differs", "not checked"]
    text: str


@dataclass(frozen=True)
class Comparison:
    """Compares ``claimed`` with ``now``; `in_order` for runs whose turns came one after the other."""

    claimed: ObservedRun
    now: ObservedRun
    paths: Paths

    def in_order(self) -> Iterator[ComparedLine]:
        """Every turn, state and test result in its place."""
        yield from _group(plural(len(self.now.turns), "turn") + " in order", self._turns())
        yield from _group(self._states_words(), self._states())
        yield from _group(self._tests_words(), self._tests(self.claimed.tests, self.now.tests))
        yield from _group(plural(len(self.now.figures), "figure"), self._figures())

    def as_a_whole(self, role_of: Callable[[str], str]) -> Iterator[ComparedLine]:
        """What does not depend on which of the turns at once ended first; ``role_of`` as in `RoleSpecCatalog`."""
        yield from _group(plural(len(self.now.turns), "turn"), self._counted_turns(role_of))
        yield from _group("the files at the end", self._ends())
        yield from _group(self._tests_words(), self._tests(self.claimed.tests[-1:], self.now.tests[-1:]))
        yield from _group(plural(len(self.now.figures), "figure"), self._figures())
        what = "the order of the turns, and the states and test results between the first and the last"
        yield ComparedLine(NOT_CHECKED, f"{what}, because turns worked at once")

    def _turns(self) -> Iterator[str]:
        for place, (claimed, now) in enumerate(zip_longest(self.claimed.turns, self.now.turns), 1):
            if claimed != now:
                yield f"turn {place} of the run: claimed {_turn(claimed)}, now {_turn(now)}"

    def _counted_turns(self, role_of: Callable[[str], str]) -> Iterator[str]:
        claimed, now = (
            Counter((role_of(turn.role), turn.unit, turn.status) for turn in run.turns)
            for run in (self.claimed, self.now)
        )
        for key in sorted({*(claimed - now), *(now - claimed)}):
            yield f"turns of {' '.join(filter(None, key))}: claimed {claimed[key]}, now {now[key]}"

    def _states_words(self) -> str:
        changes = [*self.now.changes, *self.now.in_copies]
        files = {path for change in changes for path in self.paths(change.before, change.after)}
        return f"{plural(len(changes), 'change')} of the workspace, {plural(len(files), 'file')}"

    def _states(self) -> Iterator[str]:
        if self.claimed.first != self.now.first:
            yield f"the first state: {self._differing(self.claimed.first, self.now.first)}"
        for name in ("changes", "in_copies"):
            for claimed, now in zip_longest(getattr(self.claimed, name), getattr(self.now, name)):
                if claimed != now:
                    yield self._change(claimed, now)

    def _change(self, claimed: ClaimedChange | None, now: ClaimedChange | None) -> str:
        if claimed is None or now is None or claimed.name != now.name:
            names = (change.name if change else "nothing" for change in (claimed, now))
            return "the next change of the workspace is by: claimed {}, now {}".format(*names)
        side = "after" if claimed.after != now.after else "before"
        before = "" if side == "after" else "before it, "
        return f"{claimed.name}: {before}{self._differing(getattr(claimed, side), getattr(now, side))}"

    def _ends(self) -> Iterator[str]:
        if self.claimed.last != self.now.last:
            yield f"the files at the end: {self._differing(self.claimed.last, self.now.last)}"

    def _differing(self, claimed: str, now: str) -> str:
        return ", ".join(self.paths(claimed, now)[:MAX_SHOWN]) or f"claimed {claimed[:12]}, now {now[:12]}"

    def _tests(self, all_claimed: Sequence[ClaimedTests], all_now: Sequence[ClaimedTests]) -> Iterator[str]:
        for claimed, now in zip_longest(all_claimed, all_now):
            if claimed != now:
                name = (claimed or now).name
                yield f"{name}: {tests_words(claimed, now)}"

    def _tests_words(self) -> str:
        last = f", the last: {self.now.tests[-1].words}" if self.now.tests else ""
        return f"{plural(len(self.now.tests), 'test result')}{last}"

    def _figures(self) -> Iterator[str]:
        claimed, now = self.claimed.figures, self.now.figures
        for name in sorted({*claimed, *now}):
            if claimed.get(name) != now.get(name):
                yield f"figure {name}: claimed {claimed.get(name, 'none')}, now {now.get(name, 'none')}"


def compare_tests_before(claimed: ClaimedTests | None, now: ClaimedTests | None) -> Iterator[ComparedLine]:
    """The last tests of the run on the state it started from."""
    if claimed != now:
        yield ComparedLine(DIFFERS, f"the last tests on the first state: {tests_words(claimed, now)}")
    elif now is not None:
        yield ComparedLine(SAME, f"the last tests on the first state: {now.words}")


def compare_environments(claimed: Environment, now: Environment) -> Iterator[ComparedLine]:
    """What cannot be checked here, because the run was made elsewhere."""
    there, here = claimed.model_dump(), now.model_dump()
    for name in there:
        if there[name] != here[name]:
            label = name.replace("_", "-")
            yield ComparedLine(NOT_CHECKED, f"{label} {there[name]}, because {label} is {here[name]} here")


def tests_words(claimed: ClaimedTests | None, now: ClaimedTests | None) -> str:
    """How two test results differ; None is a missing one."""
    if claimed and now and (claimed.role, claimed.turn) != (now.role, now.turn):
        return f"now they are {now.name}"
    return f"claimed {claimed.words if claimed else 'none'}; now {now.words if now else 'none'}"


def _turn(turn: ClaimedTurn | None) -> str:
    return f"{turn.name.removeprefix('turn ')} ({turn.status})" if turn else "none"


def _group(words: str, differences: Iterable[str]) -> Iterator[ComparedLine]:
    found = list(differences)
    yield from (ComparedLine(DIFFERS, each) for each in found[:MAX_SHOWN])
    if len(found) > MAX_SHOWN:
        yield ComparedLine(DIFFERS, f"and {len(found) - MAX_SHOWN} more")
    if not found:
        yield ComparedLine(SAME, words)
