"""What a person needs for a decision: what changed since the last one, who wrote it, what roles said, the tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.presentation.recorded import changes_of, files_of, read_tests, read_turns, totals_now
from codex_multi_role.presentation.wording import (
    BEFORE,
    failed_tests,
    one_line,
    plural,
    price,
    verdict,
    verdict_before,
)
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.run_folder import RunFolder, TurnFolder, skim_with_inherited
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.events import BaselineMeasured, ReviewAnswered, ReviewAsked, TurnStarted
from codex_multi_role.run_folder.past import START

if TYPE_CHECKING:
    from codex_multi_role.workspace.differences import Changes, FileChange

LONGEST_CHIP = 60
MOST_CHIPS = 5
MOST_LINES = 10
"""Most files, and most turns, in words."""


@dataclass(frozen=True)
class TurnSince:
    """``chips``: short values of its answer, such as a reviewer's verdict. ``files``: those that it changed."""

    role: str
    number: int
    summary: str
    chips: list[str]
    files: list[str]
    cost: Cost


@dataclass(frozen=True)
class Situation:
    """What a question is asked about: all since the question ``since``, empty for the first one.

    ``changes``: None if they cannot be read, ``unseen`` says why. ``earlier``: the comments on lines of that decision.
    Nothing in it is a secret but the contents of changed files.
    """

    since: str
    changes: Changes | None
    unseen: str
    turns: list[TurnSince]
    tests: str
    failed: str
    tests_before: str
    spent: Cost
    earlier: list[dict[str, object]]

    @cached_property
    def writers(self) -> dict[str, list[str]]:
        """The turns that changed a file, in order."""
        found: dict[str, list[str]] = {}
        for turn in self.turns:
            for path in turn.files:
                found.setdefault(path, []).append(f"{turn.role} {turn.number}")
        return found


def situation_of(folder: RunFolder, key: str) -> Situation:
    """What the question ``key`` is asked about. Raises `StorageError`."""
    since, earlier, baseline, began = START, list[dict[str, object]](), "", dict[tuple[str, int], None]()
    for event in skim_with_inherited(folder, (ReviewAsked, ReviewAnswered, TurnStarted, BaselineMeasured)):
        match event:
            case ReviewAsked() if event.key == key:
                break
            case ReviewAnswered():
                since, earlier, began = event.key, event.comments, {}
            case TurnStarted():
                began[event.role, event.turn] = None
            case BaselineMeasured():
                baseline = verdict_before(vars(event))
    changes, unseen = _changes(folder, since, key)
    tests = read_tests(folder)
    return Situation(
        since="" if since == START else since,
        changes=changes,
        unseen=unseen,
        turns=[_since(folder, turn) for turn in read_turns(folder, began) if (turn["role"], turn["turn"]) in began],
        tests=verdict(tests[-1]) if tests else "",
        failed=failed_tests(tests[-1]) if tests else "",
        tests_before=baseline,
        spent=Cost.of_totals(totals_now(folder, folder.record())),
        earlier=earlier,
    )


def situation_lines(situation: Situation) -> Iterator[str]:
    """The same in words: files with their lines and writers, turns with what they answered, tests, cost."""
    since = f"the decision {situation.since}" if situation.since else "the start"
    files = situation.changes.files if situation.changes else ()
    if situation.unseen:
        yield f"  changes since {since}: {situation.unseen}"
    else:
        yield f"  changed since {since}: {plural(len(files), 'file')}"
    width = max((len(one_line(file.path, 60)) for file in files[:MOST_LINES]), default=0)
    for file in files[:MOST_LINES]:
        by = ", ".join(situation.writers.get(file.path, ()))
        yield f"    {one_line(file.path, 60):<{width}}  {_counts(file)}{by and f'  by {one_line(by, 60)}'}"
    if len(files) > MOST_LINES:
        yield f"    and {len(files) - MOST_LINES} more"
    for turn in situation.turns[-MOST_LINES:]:
        yield f"  {turn.role} {turn.number}: {'; '.join(filter(None, (*turn.chips, turn.summary))) or 'no summary'}"
    if situation.tests:
        yield f"  tests: {situation.tests}{situation.failed and f' ({situation.failed})'}"
    if situation.tests_before:
        yield f"  {BEFORE}: {situation.tests_before}"
    if situation.spent.amount and (spent := price(situation.spent)):
        yield f"  cost so far: {spent}"


def _counts(file: FileChange) -> str:
    status = "" if file.status == "modified" else f", {file.status}"
    return f"{'binary' if file.added is None else f'+{file.added} -{file.removed}'}{status}"


def _changes(folder: RunFolder, since: str, key: str) -> tuple[Changes | None, str]:
    try:
        changes = changes_of(folder, since, key)
        changes.files  # noqa: B018 - read now, so that a state that cannot be read is known
    except CodexMultiRoleError as error:
        return None, one_line(str(error), 300)
    return changes, ""


def _since(folder: RunFolder, turn: Mapping[str, Any]) -> TurnSince:
    """A turn, as `read_turns` has it, with what it left."""
    left = TurnFolder.of(folder, turn["role"], turn["turn"])
    handoff = read_object(left.path / "handoff.json")
    words = one_line(folder.redact(str(turn["summary"] or turn.get("reason") or "")), 300)
    return TurnSince(turn["role"], turn["turn"], words, _chips(folder, handoff), files_of(left), Cost.of_turn(turn))


def _chips(folder: RunFolder, handoff: Mapping[str, object]) -> list[str]:
    short = {name: each for name, each in handoff.items() if isinstance(each, bool | int | float | str)}
    words = (
        f"{name.replace('_', ' ')}: {json.dumps(each) if isinstance(each, bool) else each}"
        for name, each in short.items()
        if name != "summary" and len(str(each)) <= LONGEST_CHIP
    )
    return [one_line(folder.redact(each)) for each in words][:MOST_CHIPS]
