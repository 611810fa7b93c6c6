"""Compare what a bundle claims with what another run of it did, group by group.

Nothing in a bundle goes without being played, compared or listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from codex_multi_role.extensions.replays.bundle_file import TEAM
from codex_multi_role.extensions.replays.claims import (
    ClaimedChange,
    ClaimedTests,
    ClaimedTurn,
    Environment,
    ObservedRun,
)
from codex_multi_role.extensions.replays.recording import LINE, Line, RecordedTurn, Recording
from codex_multi_role.presentation.wording import plural

SAME: Literal["same"] = "same"
DIFFERS: Literal["differs"] = "differs"
NOT_CHECKED: Literal["not checked"] = "not checked"
MAX_SHOWN = 20
"""Maximum lines of differences in one group: after the first one, the others often follow from it."""
Paths = Callable[[str, str], Sequence[str]]
"""Returns the files that differ between two states."""
_FIELDS: dict[str, str] = {
    "recording": "type version run goal flow inputs cycles repair_attempts run_tests workspace workspace_name",
    "exchange": "type unit role visit repair attempt turn kind step prompt provider model end items response status "
    "headers text",
    "ended": "type status outcome exit_code answers handoffs files",
}
"""The fields of each kind of line that a replay plays or compares."""


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


def compare_played(recording: Recording, played: Set[int], at_once: bool) -> Iterator[ComparedLine]:
    """The lines and fields of the recording that the replay had no use for; ``played``: the numbers of the others.

    A turn that was killed is recorded again, under the same key. If turns work ``at_once``, chance may cut one short.
    """
    asked = {(turn.unit, turn.ask) for turn in recording.turns if turn.lines & played}
    unasked = [turn for turn in recording.turns if turn.finished and (turn.unit, turn.ask) not in asked]
    for who, count in Counter(map(_who, unasked)).items():
        yield ComparedLine(DIFFERS, f"{plural(count, 'recorded turn')} of {who} that the run does not ask for")
    others = {number for turn in recording.turns if turn not in unasked for number in turn.lines - played}
    surplus = set() if at_once else {number for turn in recording.turns for number in _surplus(turn, played)}
    if surplus:
        yield ComparedLine(DIFFERS, f"recorded answers that their turns do not ask for: {numbers(surplus)}")
    if again := others - surplus:
        yield ComparedLine(NOT_CHECKED, f"{numbers(again)} of the recording, because they were asked for again")
    if names := sorted({*_unread_fields(recording)}):
        yield ComparedLine(NOT_CHECKED, f"fields of the recording that a replay does not use: {_some(names)}")


def compare_team(team: Path, used: Path) -> Iterator[ComparedLine]:
    """The files of the ``team`` that the replay, which kept what it read in ``used``, did not read."""
    for path in sorted(filter(Path.is_file, team.rglob("*"))):
        kept = used / path.relative_to(team)
        if not (kept.is_file() and kept.read_bytes() == path.read_bytes()):
            yield ComparedLine(NOT_CHECKED, f"{TEAM}{path.relative_to(team)}, because the run does not use it")


def numbers(lines: Iterable[int]) -> str:
    return f"lines {_some([str(number) for number in sorted(lines)])}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_SHOWN]) + (f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else "")


def _who(turn: RecordedTurn) -> str:
    return f"{turn.ask.role}, {turn.unit}" if turn.unit else turn.ask.role


def _surplus(turn: RecordedTurn, played: Set[int]) -> Set[int]:
    """The answers of a turn that was played, beyond those that it asked for."""
    answers = {answer[LINE] for answer in turn.exchanges.values()}
    return answers - played if turn.lines & played else set()


def _unread_fields(recording: Recording) -> Iterator[str]:
    answers: list[Line] = [answer for turn in recording.turns for answer in turn.exchanges.values()]
    for line in (recording.header, *answers, recording.ended or {"type": "ended"}):
        known = _FIELDS[line["type"]].split()
        yield from (f"{line['type']}.{name}" for name in line if name not in known and name != LINE)
