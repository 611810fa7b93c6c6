"""The log of a run on its page: its plain lines, and which of them a person wants to see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codex_multi_role.presentation.course import WITHIN_TURNS
from codex_multi_role.presentation.outcome import BAD, GOOD, Incident, tone_of
from codex_multi_role.presentation.plain import PlainLines
from codex_multi_role.presentation.wording import judged
from codex_multi_role.run_folder import RunEvent, events, states

DETAIL, INFO, PROBLEM = "detail", "info", "problem"
LEVELS = (DETAIL, INFO, PROBLEM)


@dataclass(frozen=True)
class LogLine:
    """``number``: of its event; ``role``: empty if it is about none."""

    number: int
    text: str
    role: str
    level: str


@dataclass(frozen=True)
class LogFilter:
    """What a line must be about; empty: anything. ``level``: the lowest one."""

    role: str = ""
    level: str = ""
    text: str = ""

    def fits(self, line: LogLine) -> bool:
        lowest = LEVELS.index(self.level) if self.level in LEVELS else 0
        is_level = LEVELS.index(line.level) >= lowest
        return is_level and self.role in ("", line.role) and self.text.lower() in line.text.lower()


def lines_of(plain: PlainLines, event: RunEvent, number: int) -> Iterator[LogLine]:
    """The lines of an event; ``number``: its place in the log."""
    role = str(getattr(event, "role", ""))
    return (LogLine(number, text, role, _level(event)) for text in plain.of(event))


def _level(event: RunEvent) -> str:
    match event:
        case events.Warning() | events.StateChanged(state=states.FAILED):
            return PROBLEM
        case events.TurnEnded(status=status) if tone_of(status, BAD) != GOOD:
            return PROBLEM
        case events.TestsEnded() if tone_of(judged(vars(event))) == BAD:
            return PROBLEM
    if isinstance(event, Incident):
        return PROBLEM
    return DETAIL if type(event) in WITHIN_TURNS else INFO
