"""What the commits of a run say: a subject, what the turn reported, and trailers to search for."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from codex_multi_role.extensions.results.workspace_states import Change
from codex_multi_role.host.spelling import printable
from codex_multi_role.run_folder.events import RunEvent, RunStarted, TestsEnded, TestsStarted, TurnEnded, TurnStarted

EVENTS = (RunStarted, TurnStarted, TurnEnded, TestsStarted, TestsEnded)
SUBJECT_CHARACTERS = 72
WIDTH = 72
NOBODY = "codex-multi-role"
HOST_COMMAND = re.compile(
    r"(?<=@)(?=\w)|(?<=[#!])(?=\d)|(?<=\bGH)-(?=\d)|(?<=:)(?=//)|(?<=\[)(?=(skip|ci|no|actions)[ -]\w+\])",
    re.IGNORECASE,
)
"""Where ``@name``, ``#1``, ``!1``, ``GH-1``, ``https://…`` and ``[skip ci]`` get a blank."""
BEFORE = "Changes before the run"
BETWEEN = "Changes between turns: by a check or a person"


@dataclass(frozen=True)
class TurnFacts:
    """What is known of a turn besides its changes. ``tests``: their result after it, empty if none ran."""

    summary: str = ""
    model: str = ""
    tests: str = ""


@dataclass
class CommitFacts:
    """What the commits say about a run: ``roles`` by name, and the facts of its turns."""

    run_id: str
    flow: str
    roles: list[str] = field(default_factory=list)
    turns: dict[tuple[str, int], TurnFacts] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Mapping[str, object], events: Iterable[RunEvent]) -> CommitFacts:
        facts = cls(str(record.get("run_id", "")), str(record.get("flow", "")))
        models: dict[tuple[str, int], str] = {}
        tested: dict[int, tuple[str, int]] = {}
        for event in events:
            match event:
                case RunStarted(roles=roles):
                    facts.roles = roles
                case TurnStarted(role=role, turn=turn, model=model):
                    models[role, turn] = model
                case TurnEnded(role=role, turn=turn, summary=summary):
                    facts.turns[role, turn] = TurnFacts(inert(summary), models.get((role, turn), ""))
                case TestsStarted(number=number, role=role, turn=turn):
                    tested[number] = (role, turn)
                case TestsEnded(number=number) if number in tested:
                    earlier = facts.turns.get(tested[number], TurnFacts())
                    facts.turns[tested[number]] = TurnFacts(earlier.summary, earlier.model, _tests(event))
        return facts

    def author(self, change: Change) -> str:
        """The role's name: that of the process without its number, if it is one of several."""
        name = re.sub(r"\.\d+$", "", change.role)
        return (name if name in self.roles else change.role) or NOBODY

    def message(self, change: Change) -> str:
        if change.copy:
            return self._text(f"Merge the copy {change.copy}", "", {"Step": _step(change.copy)})
        if not change.role:
            return self._text(BETWEEN, "", {"Step": change.unit})
        facts = self.turns.get((change.role, change.turn), TurnFacts())
        subject = f"{change.role}: {' '.join(facts.summary.split())}" if facts.summary else f"{change.role}: a turn"
        trailers = {"Step": _step(change.unit), "Turn": f"{change.role} {change.turn}"}
        return self._text(subject, facts.summary, {**trailers, "Model": facts.model, "Tests": facts.tests})

    def before(self) -> str:
        """The message of the commit with what was uncommitted when the run started."""
        return self._text(BEFORE, "", {})

    def _text(self, subject: str, body: str, trailers: Mapping[str, str]) -> str:
        shown = textwrap.shorten(subject, SUBJECT_CHARACTERS, placeholder=" …")
        paragraphs = [textwrap.fill(line, WIDTH) for line in body.splitlines()] if shown != subject else []
        named = {"Run": self.run_id, "Flow": self.flow, **trailers}
        lines = [f"{name}: {' '.join(value.split())}" for name, value in named.items() if value]
        text = "\n\n".join(filter(None, [shown, "\n".join(paragraphs).strip(), "\n".join(lines)])) + "\n"
        return printable(text, keep="\n")


def inert(text: str) -> str:
    """Put a blank into what a git host acts on in commits and titles: it notifies, closes and skips nothing then."""
    return HOST_COMMAND.sub(" ", text)


def _step(unit: str) -> str:
    """The step of a unit's key ``<step>.<visit>…``; empty in a team."""
    return unit.partition(".")[0]


def _tests(event: TestsEnded) -> str:
    failed = event.failed + event.errors
    return f"{event.status}, {event.passed} passed" + (f", {failed} failed" if failed else "")
