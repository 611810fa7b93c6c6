"""Title and body of a pull request, from what the run recorded; every text of a model or a test in it is code."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from codex_multi_role.catalog.flow_spec import CHANGED_FILES
from codex_multi_role.errors import ExitCode, UsageError
from codex_multi_role.history import RunHistory, diff, result_of
from codex_multi_role.history.commit_texts import inert
from codex_multi_role.integrations.ci.ended_run import RunEvidence
from codex_multi_role.integrations.ci.run_blocks import (
    code,
    code_block,
    facts,
    lines_of_tests,
    listed,
    playbook_note,
    result_block,
    warnings_block,
)
from codex_multi_role.option import Use
from codex_multi_role.presentation.outcome import exit_in_words, run_status, tokens_in_words
from codex_multi_role.presentation.progress import LASTING_EVENTS, Progress
from codex_multi_role.presentation.recorded import read_record, status_now, totals_now
from codex_multi_role.presentation.result import result_of as shown_result
from codex_multi_role.presentation.wording import cost_in_words, one_line, plural, verdict
from codex_multi_role.run_folder import RunEvent, RunFolder, skim_with_inherited
from codex_multi_role.run_folder.events import TestsEnded, TurnEnded, TurnStarted
from codex_multi_role.run_folder.folder import PROGRAM
from codex_multi_role.run_options import OPTIONS

TITLE_CHARACTERS = 72
MAX_BODY_BYTES = 65_000
"""GitHub takes 65,536 characters. Bytes, because an argument of a program has a limit in bytes."""
UNREACHED = "Goal not reached: "
MOST_ROLES, MOST_TURNS_EACH = 20, 10
MOST_FILE_LINES, MOST_RESULT_LINES = 100, 40
MOST_GOAL_LINES = 20


@dataclass(frozen=True)
class Description:
    """``title``: one line; ``body``: Markdown."""

    title: str
    body: str


def describe(history: RunHistory) -> Description:
    """Describe what the run changed. Raises `UsageError` if it changed no files."""
    folder, result = history.folder, result_of(history)
    if result.before == result.after:
        raise UsageError(f"run {folder.run_id} changed no files", f"`{folder.command('show')}` shows what happened.")
    record = read_record(folder)
    progress = Progress.of(skim_with_inherited(folder, LASTING_EVENTS))
    run = RunEvidence(folder=folder, progress=progress, totals=totals_now(folder, record), redact=folder.redact)
    blocks = {
        "result": _result(folder, record),
        "tests": _tests(run, history),
        "files": _files(history),
        "roles": _roles(run, folder),
        "warnings": warnings_block(run),
    }
    first = [*_ending(folder, record, run), "", *facts(run), *_origin(record)]
    return Description(_title(run, record), _within_limit(first, blocks, _reproduction(folder, record)))


def _title(run: RunEvidence, record: Mapping[str, Any]) -> str:
    start = "" if record.get("exit_code") == ExitCode.GOAL_REACHED else UNREACHED
    goal = next(filter(str.strip, str(run.progress.started.goal).splitlines()), "")
    told = goal or f"Run {record.get('run_id')} of the flow {record.get('flow')}"
    return start + one_line(inert(run.redact(told)), TITLE_CHARACTERS - len(start))


def _ending(folder: RunFolder, record: Mapping[str, Any], run: RunEvidence) -> list[str]:
    exit_code = record.get("exit_code")
    meaning = "" if exit_code is None else f"(exit code {exit_in_words(exit_code)})"
    ended = [run_status(status_now(folder, dict(record))).news, code(run.line(record.get("reason", ""), 500)), meaning]
    recording = record.get("recording")
    replayed = f"No model was asked: the answers came from the recording {code(run.line(recording))}."
    return list(filter(None, [" ".join(filter(None, ended)), playbook_note(run), replayed if recording else ""]))


def _origin(record: Mapping[str, Any]) -> list[str]:
    origin = record.get("forked_from")
    if not isinstance(origin, Mapping):
        return []
    return [f"- fork of: {code(one_line(origin.get('run_id', '')))}; the turns and files below include those before it"]


def _result(folder: RunFolder, record: Mapping[str, Any]) -> list[str]:
    """Nothing for a flow without a result of its own: the tests and the files have their parts."""
    shown = shown_result(folder, record)
    return result_block(shown, MOST_RESULT_LINES) if shown and shown.title != CHANGED_FILES.title else []


def _tests(run: RunEvidence, history: RunHistory) -> list[str]:
    before, first, is_current = _recorded_tests(history)
    if run.tests is None:
        return ["### Tests", "", "No test run was recorded."]
    told = verdict(vars(before)) if before else "unknown: no tests ran before the first change"
    during = [f"- first result: {verdict(vars(first))}"] if first and not before else []
    latest, *failed = lines_of_tests(run, run.tests)
    stale = "" if is_current else " (before the last turn that changed files)"
    return ["### Tests", "", f"- before: {told}", *during, f"- after: {latest}{stale}", *(f"  {red}" for red in failed)]


def _recorded_tests(history: RunHistory) -> tuple[TestsEnded | None, TestsEnded | None, bool]:
    """The last tests before the first change, the first of all, and whether any ran after the last turn with changes.

    Nothing is before a first change that no turn made: tests, a check or a person changed files at an unknown time.
    """
    states = history.states
    changes = [*states.changes, *(change for inside in states.in_copies.values() for change in inside)]
    changed = {(change.role, change.turn) for change in changes}
    seen = any(not (change.role or change.copy) for change in states.changes[:1])
    before: TestsEnded | None = None
    first: TestsEnded | None = None
    is_current = False
    for event in skim_with_inherited(history.folder, (TurnStarted, TestsEnded)):
        if isinstance(event, TestsEnded):
            before, first, is_current = before if seen else event, first or event, True
        elif _is_of(event, changed):
            seen, is_current = True, False
    return before, first, is_current


def _is_of(event: RunEvent, turns: set[tuple[str, int]]) -> bool:
    return isinstance(event, TurnStarted) and (event.role, event.turn) in turns


def _files(history: RunHistory) -> list[str]:
    lines = history.folder.redact(diff(history.folder, stat=True).text).splitlines()
    more = [f"and {len(lines) - MOST_FILE_LINES} more lines"] if len(lines) > MOST_FILE_LINES else []
    return ["### Files", "", *code_block(lines[:MOST_FILE_LINES]), *more]


def _roles(run: RunEvidence, folder: RunFolder) -> list[str]:
    said: dict[str, list[str]] = {}
    for event in skim_with_inherited(folder, (TurnEnded,)):
        if isinstance(event, TurnEnded):
            told = event.summary or event.reason or event.status
            said.setdefault(event.role, []).append(f"turn {event.turn}: {code(run.line(told))}")
    lines = [line for name in list(said)[:MOST_ROLES] for line in _role(run, name, said[name])]
    more = [f"- and {plural(len(said) - MOST_ROLES, 'role')} more"] if len(said) > MOST_ROLES else []
    return ["### What the roles did", "", *lines, *more] if lines else []


def _role(run: RunEvidence, name: str, said: list[str]) -> list[str]:
    role = run.progress.role(name)
    tokens = tokens_in_words(role.input_tokens, role.output_tokens)
    cost = f", cost: {cost_in_words(role.cost)}" if role.cost.known is not None else ""
    return [
        f"- {code(run.line(name))}: {plural(len(said), 'turn')}, tokens: {tokens}{cost}",
        *listed(said, MOST_TURNS_EACH, "  "),
    ]


def _reproduction(folder: RunFolder, record: Mapping[str, Any]) -> list[str]:
    """Commands for another checkout of the same commit, and those that need the run folder."""
    commit = (record.get("repository") or {}).get("commit")
    steps = [f"git checkout {commit}"] if commit else []
    command = folder.redact(shlex.join([PROGRAM, "run", *_options(record.get("options") or {})])).split("\n")
    if len(command) > MOST_GOAL_LINES or not all(map(_is_exact_in_a_block, command)):
        command = ["# the command of the run cannot be shown here; its options are in run.json"]
    recorded = [f"{PROGRAM} {verb} {folder.run_id}" for verb in ("show", "diff")]
    recorded.append(f"{PROGRAM} export {folder.run_id} --branch NAME")
    roles = "The run had its own roles (`--roles`). " if (record.get("options") or {}).get("roles") else ""
    note = f"{roles}The last three commands need the folder of the run, {code(folder.run_id)}."
    return ["### How to reproduce", "", *code_block([*steps, *command, *recorded], "sh"), "", note]


def _is_exact_in_a_block(line: str) -> bool:
    return line.isprintable() and code_block([line])[1] == line


def _options(recorded: Mapping[str, Any]) -> Iterator[str]:
    """The options of ``run`` that differ from their defaults and count in any checkout."""
    for name, option in OPTIONS.items():
        value = recorded.get(name)
        if Use.LOCAL not in option.use and value not in (None, "", [], {}, option.default):
            for given in option.arguments(value):
                yield from given


def _within_limit(first: list[str], blocks: Mapping[str, list[str]], last: list[str]) -> str:
    """Join the blocks; one that does not fit any more is named instead."""
    start, end = "\n".join(first), "\n".join(last)
    room = MAX_BODY_BYTES - len(f"{start}{end}".encode()) - 500
    kept, left_out = [], []
    for name, lines in blocks.items():
        text = "\n".join(lines)
        size = len(text.encode("utf-8", "replace")) + 2
        if size <= room:
            kept.append(text)
            room -= size
        else:
            left_out.append(name)
    note = f"Left out, because a body has at most 65,536 characters: {', '.join(left_out)}." if left_out else ""
    return "\n\n".join(filter(None, [start, *kept, note, end])) + "\n"
