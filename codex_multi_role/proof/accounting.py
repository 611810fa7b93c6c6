"""What a bundle has that its replay did not use: nothing in it goes without being played, compared or listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path

from codex_multi_role.playbook.recording import LINE, Line, RecordedTurn, Recording
from codex_multi_role.presentation.wording import plural
from codex_multi_role.proof.bundle_file import TEAM
from codex_multi_role.proof.comparing import DIFFERS, MAX_SHOWN, NOT_CHECKED, ComparedLine

_FIELDS: dict[str, str] = {
    "recording": "type version run goal flow inputs cycles repair_attempts run_tests workspace workspace_name",
    "exchange": "type unit role visit repair attempt turn kind step prompt provider model end items response status "
    "headers text",
    "ended": "type status outcome exit_code answers handoffs files",
}
"""The fields of each kind of line that a replay plays or compares."""


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
