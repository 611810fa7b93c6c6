"""A run as Markdown, for the page of a CI job: how it ended, what was done, what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterable

from codex_multi_role.errors import ExitCode
from codex_multi_role.integrations.ci.ended_run import Case, EndedRun
from codex_multi_role.presentation.outcome import playbook_in_words, tokens_in_words, turns_in_words
from codex_multi_role.presentation.progress import RoleProgress
from codex_multi_role.presentation.recorded import changed_files, read_record
from codex_multi_role.presentation.result import result_of
from codex_multi_role.presentation.wording import PROGRAM, duration, one_line, verdict
from codex_multi_role.run_folder import Questions, RunFolder

MOST_LISTED = 50
MOST_ROLES = 200
MOST_RESULT_LINES = 200
MOST_RESULT_COLUMNS = 500
GOOD, BAD, PARKED = "✅", "❌", "⏸️"
HEADINGS = ["role", "turns", "tokens in", "tokens out", "time", "last message"]
NUMBERS = frozenset(HEADINGS[1:5])
BACKTICKS = re.compile(r"`+")
PIPE = re.compile(r"(\\*)\|")


def job_summary(run: EndedRun) -> str:
    """Return the Markdown, below GitHub's limit of 1 MiB; every text of a model, a test or a user in it is code."""
    blocks = [_heading(run), _ending(run)]
    if run.folder is not None:
        blocks += [_result(run.folder), _facts(run), _roles(run), _tests(run), _files(run, run.folder)]
        blocks += [_warnings(run), _questions(run, run.folder)]
    blocks.append(_next_steps(run))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _heading(run: EndedRun) -> list[str]:
    sign = GOOD if run.exit_code == 0 else PARKED if ExitCode(run.exit_code).is_parked else BAD
    return [f"## {sign} {PROGRAM}: {run.outcome if run.is_own_word else code(run.line(run.outcome))}"]


def _ending(run: EndedRun) -> list[str]:
    parts = [code(run.line(run.reason, 500)), f"({run.meaning})"]
    played = run.progress.started.playbook
    if played:
        parts.append(playbook_in_words(played, over=True, named=lambda name: code(run.line(name))))
    return [" ".join(part for part in parts if part)]


def _result(folder: RunFolder) -> list[str]:
    """The result as a block of code: it is the text of a model."""
    result = result_of(folder, read_record(folder))
    if result is None:
        return []
    lines = result.text.splitlines()
    more = [f"- and {len(lines) - MOST_RESULT_LINES:,} more lines"] if len(lines) > MOST_RESULT_LINES else []
    file = [f"- file: {code(one_line(result.file, 1000))}"] if result.file else []
    figures = [f"- {code(name)}: {code(value)}" for name, value in result.figures]
    text = "\n".join(line[:MOST_RESULT_COLUMNS] for line in lines[:MOST_RESULT_LINES])
    fence = "`" * max(3, 1 + max(map(len, BACKTICKS.findall(text)), default=0))
    return [f"### {code(result.title)}", "", *figures, *file, "", f"{fence}text", text, fence, *more]


def _facts(run: EndedRun) -> list[str]:
    totals, started, where = run.totals, run.progress.started, run.progress.where
    return [
        f"- goal: {code(run.line(started.goal, 1000))}",
        f"- flow: {code(run.line(started.flow))}{f', {code(run.line(where))}' if where else ''}",
        f"- turns: {turns_in_words(totals)}",
        f"- tokens: {tokens_in_words(totals.get('input_tokens', 0), totals.get('output_tokens', 0))}",
        f"- folder: {code(one_line(run.folder.path if run.folder else '', 1000))}",
    ]


def _roles(run: EndedRun) -> list[str]:
    roles = [role for role in run.progress.roles.values() if role.turns][:MOST_ROLES]
    return ["### Roles", "", *table(HEADINGS, [_role(run, role) for role in roles], NUMBERS)] if roles else []


def _role(run: EndedRun, role: RoleProgress) -> list[str]:
    counts = [f"{number:,}" for number in (role.turns, role.input_tokens, role.output_tokens)]
    return [cell(run.line(role.name)), *counts, duration(role.seconds), cell(run.line(role.last))]


def _tests(run: EndedRun) -> list[str]:
    if (tests := run.tests) is None:
        return []
    reason = run.line(tests.result.get("reason", ""), 500)
    lines = [f"{verdict(tests.result)}{f': {code(reason)}' if reason else ''}"]
    return ["### Tests", "", *lines, *_listed([_test(run, case) for case in tests.red], lead=[""])]


def _test(run: EndedRun, case: Case) -> str:
    place = f" in {code(run.line(f'{case.file}:{case.line}' if case.line else case.file))}" if case.file else ""
    message = code(run.line(case.message))
    return f"{code(run.line(case.full_name))}{place}{f': {message}' if message else ''}"


def _files(run: EndedRun, folder: RunFolder) -> list[str]:
    names = changed_files(folder, read_record(folder))
    return ["### Files changed", "", *_listed([code(run.line(name)) for name in names])] if names else []


def _warnings(run: EndedRun) -> list[str]:
    warnings = [code(run.line(warning, 500)) for warning in dict.fromkeys(run.progress.warnings)]
    return ["### Warnings", "", *_listed(warnings)] if warnings else []


def _questions(run: EndedRun, folder: RunFolder) -> list[str]:
    if not ExitCode(run.exit_code).is_resumable:
        return []
    asked = [
        f"{code(run.line(each.key))}: {code(run.line(each.question, 1000))}"
        for each in Questions(folder.path).pending()
    ]
    return ["### Waiting for an answer", "", *_listed(asked)] if asked else []


def _next_steps(run: EndedRun) -> list[str]:
    if not run.hint and not run.following:
        return []
    hint = [f"- {code(run.line(run.hint, 500))}"] if run.hint else []
    return ["### Next", "", *hint, *([f"- {code(one_line(run.following, 1000))}"] if run.following else [])]


def _listed(items: Iterable[str], lead: list[str] | None = None) -> list[str]:
    """List at most `MOST_LISTED` items and the number of the rest, after ``lead``; empty without items."""
    items = list(items)
    lines = [f"- {item}" for item in items[:MOST_LISTED]]
    if len(items) > MOST_LISTED:
        lines.append(f"- and {len(items) - MOST_LISTED} more")
    return [*(lead or []), *lines] if lines else []


def code(line: str) -> str:
    """Format one line as a code span; empty for an empty line."""
    if not line.strip():
        return ""
    fence = "`" * (max(map(len, BACKTICKS.findall(line)), default=0) + 1)
    padding = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def cell(line: str) -> str:
    """Format a line as `code` in a table cell, which a pipe ends unless an odd number of backslashes precedes it."""
    return PIPE.sub(lambda found: f"{found[1]}{found[1]}\\|", code(line))


def table(headings: list[str], rows: list[list[str]], numbers: frozenset[str] = frozenset()) -> list[str]:
    """Return a table's lines; its cells are Markdown."""
    lines = [headings, ["--:" if heading in numbers else "---" for heading in headings], *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
