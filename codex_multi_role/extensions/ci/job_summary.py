"""A run as Markdown, for the page of a CI job: how it ended, what was done, what to do next."""

from __future__ import annotations

from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.ci.ended_run import EndedRun
from codex_multi_role.extensions.ci.run_blocks import (
    cell,
    code,
    facts,
    lines_of_tests,
    listed,
    playbook_note,
    result_block,
    table,
    warnings_block,
)
from codex_multi_role.presentation.pieces import RoleNow
from codex_multi_role.presentation.recorded import changed_files, read_record
from codex_multi_role.presentation.result import result_of
from codex_multi_role.presentation.wording import duration, one_line, price
from codex_multi_role.run_folder import Questions, RunFolder
from codex_multi_role.run_folder.folder import PROGRAM

MOST_ROLES = 200
MOST_RESULT_LINES = 200
GOOD, BAD, PARKED = "✅", "❌", "⏸️"
HEADINGS = ["role", "turns", "tokens in", "tokens out", "cost", "time", "last message"]
NUMBERS = frozenset(HEADINGS[1:6])


def job_summary(run: EndedRun) -> str:
    """Return the Markdown, below GitHub's limit of 1 MiB; every text of a model, a test or a user in it is code."""
    blocks = [_heading(run), _ending(run)]
    if run.folder is not None:
        place = f"- folder: {code(one_line(run.folder.path, 1000))}"
        blocks += [_result(run.folder), [*facts(run), place], _roles(run), _tests(run), _files(run, run.folder)]
        blocks += [warnings_block(run), _questions(run, run.folder)]
    blocks.append(_next_steps(run))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _heading(run: EndedRun) -> list[str]:
    sign = GOOD if run.exit_code == 0 else PARKED if ExitCode(run.exit_code).is_parked else BAD
    return [f"## {sign} {PROGRAM}: {run.outcome if run.is_own_word else code(run.line(run.outcome))}"]


def _ending(run: EndedRun) -> list[str]:
    parts = [code(run.line(run.reason, 500)), f"({run.meaning})", playbook_note(run)]
    return [" ".join(part for part in parts if part)]


def _result(folder: RunFolder) -> list[str]:
    result = result_of(folder, read_record(folder))
    if result is None:
        return []
    file = [f"- file: {code(one_line(result.file, 1000))}"] if result.file else []
    return result_block(result, MOST_RESULT_LINES, file)


def _roles(run: EndedRun) -> list[str]:
    roles = [role for role in run.course.roles.values() if role.turns][:MOST_ROLES]
    return ["### Roles", "", *table(HEADINGS, [_role(run, role) for role in roles], NUMBERS)] if roles else []


def _role(run: EndedRun, role: RoleNow) -> list[str]:
    counts = [f"{number:,}" for number in (role.turns, role.input_tokens, role.output_tokens)]
    return [
        cell(run.line(role.name)),
        *counts,
        price(role.cost),
        duration(role.seconds),
        cell(run.line(role.last)),
    ]


def _tests(run: EndedRun) -> list[str]:
    if run.tests is None:
        return []
    verdict, *red = lines_of_tests(run, run.tests)
    return ["### Tests", "", verdict, *(["", *red] if red else [])]


def _files(run: EndedRun, folder: RunFolder) -> list[str]:
    names = changed_files(folder, read_record(folder))
    return ["### Files changed", "", *listed([code(run.line(name)) for name in names])] if names else []


def _questions(run: EndedRun, folder: RunFolder) -> list[str]:
    if not ExitCode(run.exit_code).is_resumable:
        return []
    asked = [
        f"{code(run.line(each.key))}: {code(run.line(each.question, 1000))}"
        for each in Questions(folder.path).pending()
    ]
    return ["### Waiting for an answer", "", *listed(asked)] if asked else []


def _next_steps(run: EndedRun) -> list[str]:
    if not run.hint and not run.following:
        return []
    hint = [f"- {code(run.line(run.hint, 500))}"] if run.hint else []
    return ["### Next", "", *hint, *([f"- {code(one_line(run.following, 1000))}"] if run.following else [])]
