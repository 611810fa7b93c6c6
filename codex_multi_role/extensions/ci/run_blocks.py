"""Parts of a run's Markdown that its job summary and its pull request share; all foreign text in them is code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from codex_multi_role.extensions.ci.ended_run import Case, LatestTests, RunEvidence
from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.outcome import playbook_in_words, tokens_in_words, turns_in_words
from codex_multi_role.presentation.result import ShownResult
from codex_multi_role.presentation.wording import price, verdict
from codex_multi_role.run_folder.cost import Cost

MOST_LISTED = 50
MOST_COLUMNS = 500
BACKTICKS = re.compile(r"`+")
PIPE = re.compile(r"(\\*)\|")


def playbook_note(run: RunEvidence) -> str:
    """Return the sentence that no model was asked; empty if one was."""
    played = run.course.started.playbook
    return playbook_in_words(played, over=True, named=lambda name: code(run.line(name))) if played else ""


def result_block(result: ShownResult, most_lines: int, more: Iterable[str] = ()) -> list[str]:
    """The result as a block of code, because it is the text of a model, after its figures and ``more`` items."""
    lines = result.text.splitlines()
    figures = [f"- {code(name)}: {code(value)}" for name, value in result.figures]
    text = code_block(lines[:most_lines]) if lines else []
    cut = [f"- and {len(lines) - most_lines:,} more lines"] if len(lines) > most_lines else []
    return [f"### {code(result.title)}", "", *figures, *more, *(["", *text] if text else []), *cut]


def facts(run: RunEvidence) -> list[str]:
    """The goal, the flow, and what the run cost, as items."""
    totals, started, where = run.totals, run.course.started, run.course.where
    cost = price(Cost.of_totals(totals))
    return [
        f"- goal: {code(run.line(started.goal, 1000))}",
        f"- flow: {code(run.line(started.flow))}{f', {code(run.line(where))}' if where else ''}",
        f"- turns: {turns_in_words(totals)}",
        f"- tokens: {tokens_in_words(totals.get('input_tokens', 0), totals.get('output_tokens', 0))}",
        *([f"- cost: {cost}"] if cost else []),
    ]


def lines_of_tests(run: RunEvidence, tests: LatestTests) -> list[str]:
    """The verdict, then one item per failed test."""
    reason = run.line(tests.result.get("reason", ""), 500)
    told = f"{verdict(tests.result)}{f': {code(reason)}' if reason else ''}"
    return [told, *listed([_failed_test(run, case) for case in tests.red])]


def _failed_test(run: RunEvidence, case: Case) -> str:
    place = f" in {code(run.line(f'{case.file}:{case.line}' if case.line else case.file))}" if case.file else ""
    message = code(run.line(case.message))
    return f"{code(run.line(case.full_name))}{place}{f': {message}' if message else ''}"


def warnings_block(run: RunEvidence) -> list[str]:
    warnings = [code(run.line(warning, 500)) for warning in dict.fromkeys(run.course.warnings)]
    return ["### Warnings", "", *listed(warnings)] if warnings else []


def listed(items: Iterable[str], most: int = MOST_LISTED, indent: str = "") -> list[str]:
    """List at most ``most`` items and the number of the rest."""
    items = list(items)
    lines = [f"{indent}- {item}" for item in items[:most]]
    return [*lines, f"{indent}- and {len(items) - most} more"] if len(items) > most else lines


def code(line: str) -> str:
    """Format one line as a code span; empty for an empty line."""
    line = printable(line)
    if not line.strip():
        return ""
    fence = "`" * (max(map(len, BACKTICKS.findall(line)), default=0) + 1)
    padding = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def code_block(lines: Sequence[str], language: str = "text") -> list[str]:
    """Format lines as a block of code; of each, only the first `MOST_COLUMNS` characters are shown.

    No line begins with a slash: GitLab looks for quick actions such as ``/merge``, also in blocks that contain a fence.
    """
    clean = (printable(line.expandtabs())[:MOST_COLUMNS] for line in lines)
    shown = [f"{' ' * line.startswith('/')}{line}" for line in clean]
    longest = max((len(found) for line in shown for found in BACKTICKS.findall(line)), default=0)
    fence = "`" * max(3, 1 + longest)
    return [f"{fence}{language}", *shown, fence]


def cell(line: str) -> str:
    """Format a line as `code` in a table cell, which a pipe ends unless an odd number of backslashes precedes it."""
    return PIPE.sub(lambda found: f"{found[1]}{found[1]}\\|", code(line))


def table(headings: list[str], rows: list[list[str]], numbers: frozenset[str] = frozenset()) -> list[str]:
    """Return a table's lines; its cells are Markdown."""
    lines = [headings, ["--:" if heading in numbers else "---" for heading in headings], *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
