"""What a person needs for a decision: what changed since the last one, who wrote it, what roles said, the tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.presentation.recorded import changes_of, files_of, read_tests, read_turns, totals_now
from codex_multi_role.presentation.wording import (
    BEFORE,
    cost_in_words,
    failed_tests,
    one_line,
    plural,
    verdict,
    verdict_before,
)
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.run_folder import RunFolder, TurnFolder, skim_with_inherited
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.events import BaselineMeasured, ReviewAnswered, ReviewAsked, TurnStarted
from codex_multi_role.run_folder.past import START, decision_before
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
    since = decision_before(folder, key)
    changes, unseen = _changes(folder, since, key)
    tests = read_tests(folder)
    told = list(skim_with_inherited(folder, (BaselineMeasured, ReviewAnswered)))
    baseline = [each for each in told if isinstance(each, BaselineMeasured)]
    earlier = [each.comments for each in told if isinstance(each, ReviewAnswered) and each.key == since]
    return Situation(
        since="" if since == START else since,
        changes=changes,
        unseen=unseen,
        turns=list(_turns_since(folder, since, key)),
        tests=verdict(tests[-1]) if tests else "",
        failed=failed_tests(tests[-1]) if tests else "",
        tests_before=verdict_before(vars(baseline[-1])) if baseline else "",
        spent=Cost.of_totals(totals_now(folder, folder.record())),
        earlier=earlier[-1] if earlier else [],
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
    if situation.spent.amount and situation.spent.known is not None:
        yield f"  cost so far: {cost_in_words(situation.spent)}"


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


def _turns_since(folder: RunFolder, since: str, key: str) -> Iterator[TurnSince]:
    """The turns between two questions, in order, each with what it left."""
    began: list[tuple[str, int]] = []
    for event in skim_with_inherited(folder, (ReviewAsked, ReviewAnswered, TurnStarted)):
        match event:
            case ReviewAnswered() if event.key == since:
                began.clear()
            case ReviewAsked() if event.key == key:
                break
            case TurnStarted():
                began.append((event.role, event.turn))
    wanted = set(began)
    for turn in read_turns(folder, began):
        if (turn["role"], turn["turn"]) in wanted:
            left = TurnFolder.of(folder, turn["role"], turn["turn"])
            handoff = read_object(left.path / "handoff.json")
            words = one_line(folder.redact(str(turn["summary"] or turn.get("reason") or "")), 300)
            yield TurnSince(
                turn["role"], turn["turn"], words, _chips(folder, handoff), files_of(left), Cost.of_turn(turn)
            )


def _chips(folder: RunFolder, handoff: Mapping[str, object]) -> list[str]:
    short = {name: each for name, each in handoff.items() if isinstance(each, bool | int | float | str)}
    words = (
        f"{name.replace('_', ' ')}: {json.dumps(each) if isinstance(each, bool) else each}"
        for name, each in short.items()
        if name != "summary" and len(str(each)) <= LONGEST_CHIP
    )
    return [one_line(folder.redact(each)) for each in words][:MOST_CHIPS]
