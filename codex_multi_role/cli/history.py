"""What happened in a run as the rows of a table, in the order it began: turns, tests, checks and questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codex_multi_role.cli.tables import Column
from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.presentation.entries import TimedPart, in_order
from codex_multi_role.presentation.outcome import status_in_words
from codex_multi_role.presentation.story import ReportedTurn, Story, TestRun
from codex_multi_role.presentation.wording import answer_in_words, clock, cost_in_words, failed_tests, judged, verdict
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.run_folder import Question, Questions, RunFolder
from codex_multi_role.run_folder.cost import Cost

COLUMNS = (
    *(Column("at"), Column("who"), Column("turn", number=True), Column("status")),
    *(Column("tokens in", number=True), Column("out", number=True), Column("cost", number=True)),
    Column("seconds", number=True),
    Column("about", text=24),
)

Row = list[object]
Record = Mapping[str, Any]


def rows(folder: RunFolder, story: Story, turns: Sequence[Record], tests: Sequence[Record]) -> list[Row]:
    """``turns`` and ``tests`` as in `read_turns` and `read_tests`."""
    known_turns = {(turn["role"], turn["turn"]): turn for turn in turns}
    known_tests = {each["number"]: each for each in tests}
    parts = in_order(folder, story, Questions(folder.path).asked())
    parts += [TimedPart(each.began, each) for each in story.tests.values() if each.turn]
    found: list[Row] = []
    for part in sorted(parts, key=lambda part: part.at):
        at = clock(part.at) if part.at else ""
        match part.what:
            case ReportedTurn() as turn:
                found.append([at, *_turn(turn, known_turns.get((turn.role, turn.number), {}))])
            case TestRun() as run:
                found.append([at, *_tests(run, known_tests.get(run.number, {}))])
            case Question() as question:
                found.append([at, *_question(question)])
            case Path() as check:
                found.append([at, *_check(check.relative_to(folder.path / "checks").as_posix(), check)])
    return found


def _turn(turn: ReportedTurn, result: Record) -> Row:
    tokens = TokenUsage.of_record(result.get("tokens") or {})
    repair = f"repairs turn {result['repair_of']}. " if result.get("repair_of") else ""
    if result.get("continues"):
        repair = f"continues turn {result['continues']}. "
    inherited = "inherited. " if result.get("inherited") else ""
    said = result.get("reason") or result.get("summary") or turn.summary
    return [
        turn.role,
        turn.number,
        status_in_words(result.get("status", turn.status)),
        f"{tokens.input:,}",
        f"{tokens.output:,}",
        cost_in_words(Cost.of_turn(result)),
        f"{result.get('seconds', 0):.1f}",
        f"{inherited}{repair}{said}" + (f" ({turn.ignored})" if turn.ignored else ""),
    ]


def _tests(run: TestRun, result: Record) -> Row:
    told = {**vars(run), **result}
    status = judged(told)
    counts = verdict(told).removeprefix(f"{status}: ").removeprefix(status)
    about = ": ".join(filter(None, (counts, failed_tests(told))))
    return [f"tests {run.number:03d}", "", status, "", "", "", _seconds(told), about]


def _question(question: Question) -> Row:
    answer = question.answer
    status = "open" if answer is None else answer_in_words(answer.approved, answer.option, answer.values)
    comment = f" {answer.by}: {answer.comment}" if answer is not None and answer.comment else ""
    return [f"review {question.key}", "", status, "", "", "", "", f"{question.question}{comment}"]


def _check(key: str, folder: Path) -> Row:
    result = read_object(folder / "result.json")
    status = status_in_words(result.get("status", "ended"))
    return [f"check {key}", "", status, "", "", "", _seconds(result), result.get("reason", "")]


def _seconds(result: Record) -> str:
    seconds = result.get("seconds")
    return f"{seconds:.1f}" if isinstance(seconds, int | float) else ""
