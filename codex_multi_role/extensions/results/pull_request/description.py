"""Title and body of a pull request, from what the run recorded; every text of a model or a test in it is code."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from typing import Any

from codex_multi_role.catalog.flow_spec import CHANGED_FILES
from codex_multi_role.catalog.prices import PRICES_FILE
from codex_multi_role.catalog.source_files import LOCAL_ROLES
from codex_multi_role.errors import ExitCode, UsageError
from codex_multi_role.extensions.ci.ended_run import RunEvidence
from codex_multi_role.extensions.ci.run_blocks import (
    code,
    code_block,
    facts,
    lines_of_tests,
    listed,
    playbook_note,
    result_block,
    warnings_block,
)
from codex_multi_role.extensions.results.commit_texts import inert
from codex_multi_role.extensions.results.exporting import start_of
from codex_multi_role.extensions.results.patches import diff
from codex_multi_role.extensions.results.run_history import RunHistory, result_of
from codex_multi_role.host.settings_files import nearest_settings
from codex_multi_role.option import Use
from codex_multi_role.playbook.script import AUTOMATIC
from codex_multi_role.presentation.course import LASTING_EVENTS, Course
from codex_multi_role.presentation.outcome import exit_in_words, run_status, tokens_in_words
from codex_multi_role.presentation.recorded import read_record, status_now, totals_now
from codex_multi_role.presentation.result import result_of as shown_result
from codex_multi_role.presentation.wording import cost_in_words, one_line, plural, verdict
from codex_multi_role.reading.shipped import PLAYBOOKS, definition_folders
from codex_multi_role.run_folder import RunFolder, skim_with_inherited
from codex_multi_role.run_folder.events import BaselineMeasured, TestsEnded, TurnEnded, TurnStarted
from codex_multi_role.run_folder.folder import PROGRAM, RECORDING
from codex_multi_role.run_options import RunPlace, all_options
from codex_multi_role.workspace.snapshots import kept_paths
from codex_multi_role.workspace.trees import entries_of

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
    course = Course.of(skim_with_inherited(folder, LASTING_EVENTS))
    run = RunEvidence(folder=folder, course=course, totals=totals_now(folder, record), redact=folder.redact)
    blocks = {
        "result": _result(folder, record),
        "tests": _tests(run, history),
        "files": _files(history),
        "roles": _roles(run, folder),
        "warnings": warnings_block(run),
    }
    first = [*_ending(folder, record, run), "", *facts(run), *_origin(record)]
    return Description(_title(run, record), _within_limit(first, blocks, _reproduction(history, record)))


def _title(run: RunEvidence, record: Mapping[str, Any]) -> str:
    start = "" if record.get("exit_code") == ExitCode.GOAL_REACHED else UNREACHED
    goal = next(filter(str.strip, str(run.course.started.goal).splitlines()), "")
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


def _recorded_tests(history: RunHistory) -> tuple[TestsEnded | BaselineMeasured | None, TestsEnded | None, bool]:
    """The last tests before the first change, the first of all, and whether any ran after the last turn with changes.

    Nothing is before a first change that no turn made: a check or a person changed files at an unknown time.
    """
    states = history.states
    changes = [*states.changes, *(change for inside in states.in_copies.values() for change in inside)]
    changed = {(change.role, change.turn) for change in changes}
    seen = any(not (change.role or change.copy) for change in states.changes[:1])
    before: TestsEnded | BaselineMeasured | None = None
    first: TestsEnded | None = None
    is_current = False
    for event in skim_with_inherited(history.folder, (TurnStarted, TestsEnded, BaselineMeasured)):
        if isinstance(event, BaselineMeasured):
            before = event
        elif isinstance(event, TestsEnded):
            before, first, is_current = before if seen else event, first or event, True
        elif isinstance(event, TurnStarted) and (event.role, event.turn) in changed:
            seen, is_current = True, False
    return before, first, is_current


def _files(history: RunHistory) -> list[str]:
    lines = history.folder.redact(diff(history.folder, stat=True).text).splitlines()
    more = [f"and {len(lines) - MOST_FILE_LINES} more lines"] if len(lines) > MOST_FILE_LINES else []
    named = code(history.folder.redact(history.left_out))
    left = [f"left by test runs, and no part of this: {named}"] if history.left_out else []
    return ["### Files", "", *code_block(lines[:MOST_FILE_LINES]), *more, *left]


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
    role = run.course.role(name)
    tokens = tokens_in_words(role.input_tokens, role.output_tokens)
    cost = f", cost: {cost_in_words(role.cost)}" if role.cost.known is not None else ""
    return [
        f"- {code(run.line(name))}: {plural(len(said), 'turn')}, tokens: {tokens}{cost}",
        *listed(said, MOST_TURNS_EACH, "  "),
    ]


def _reproduction(history: RunHistory, record: Mapping[str, Any]) -> list[str]:
    """Commands for the top of another checkout of the same commit, with the folder of the run in its ``runs/``."""
    folder, base = history.folder, record.get("repository") or {}
    files, settings = _known_files(history), _settings(base)
    given = _options(record.get("options") or {}, _paths(folder, record, files, settings), settings)
    workspace = re.escape(record.get("source_workspace", record["workspace"]))
    command = re.sub(rf"(?<![\w./~-]){workspace}/", "", shlex.join([PROGRAM, "run", *given]))
    lines = command.split("\n")
    if folder.redact(command) != command or len(lines) > MOST_GOAL_LINES or not all(map(_is_exact_in_a_block, lines)):
        lines = ["# the command of the run cannot be shown here; its options are in run.json"]
    verbs = ["show {}", "diff {}", *(["export {} --branch NAME --repo ."] if base.get("commit") else [])]
    where = " --runs-dir runs" if "runs_dir" in settings else ""
    lines += [f"{PROGRAM} {verb.format(folder.run_id)}{where}" for verb in verbs]
    note = f"Run these at the top of a checkout in which `runs/{folder.run_id}` is a copy of the run's folder."
    return ["### How to reproduce", "", *code_block([*_preparation(history, record, files), *lines], "sh"), "", note]


def _preparation(history: RunHistory, record: Mapping[str, Any], files: Mapping[str, str]) -> Iterator[str]:
    base, run = record.get("repository") or {}, history.folder
    if not base.get("commit"):
        yield "# the run did not start from a commit: run these in a folder with the files that it started with"
        return
    yield f"git checkout {base['commit']}"
    if (listed := base.get("uncommitted")) and (paths := kept_paths(history.git(), listed)):
        yield f"# the run started with uncommitted changes to {plural(len(paths), 'file')}, which this commit lacks"
    if (run.path / "reviews").is_dir() and not record["options"].get("yes"):
        yield f"# the run asked a person: `{PROGRAM} show {run.run_id}` has the answers"
    if base["below"] and not any(path.startswith(f"{base['below']}/") for path in files):
        yield shlex.join(["mkdir", "-p", base["below"]])


def _known_files(history: RunHistory) -> dict[str, str]:
    """The files of the commit from which the run started, and the shipped roles by absolute path; their content ids."""
    shipped = (file for folder in definition_folders() for file in folder.rglob("*") if file.is_file())
    files = {str(file): _content_id(file) for file in shipped}
    with suppress(UsageError):  # the commit is not on this machine
        repository, _, commit = start_of(history, None)
        files |= {path: entry.oid for path, entry in entries_of(repository.git, commit).items()} if commit else {}
    return files


def _settings(base: Mapping[str, str]) -> str:
    """The settings of the project. An option that they may name is given even if it has its default."""
    with suppress(ValueError, OSError):
        return file.read_text().replace("-", "_") if base and (file := nearest_settings(Path(base["top"]))) else ""
    return ""


def _paths(run: RunFolder, record: Mapping[str, Any], files: Mapping[str, str], settings: str) -> dict[str, str]:
    """The options that name folders and files, as they are in a checkout."""
    base, options = record.get("repository") or {}, record.get("options") or {}
    paths = {"workspace": base.get("below") or ("." if "workspace" in settings else "")}
    if "catalog_file" not in record:
        return paths
    catalog = run.catalog_path / record["catalog_file"]
    copies = {"playbook": catalog.parent / f"playbooks/{record.get('playbook_file')}"}
    copies |= {"prices": catalog.with_name(PRICES_FILE)} if options.get("prices") else {}
    copies |= {"replay": run.catalog_path / RECORDING}
    team = {_content_id(file) for file in run.catalog_path.rglob("*") if file.is_file() and file not in copies.values()}
    source, is_known = os.path.relpath(record["roles_source"], base.get("top", "/")), team <= {*files.values()}
    if is_known and source in files:
        paths["roles"] = source.removesuffix("/catalog.yaml")
    elif not is_known or record["roles_source"] not in files or f"{LOCAL_ROLES}/catalog.yaml" in files:
        paths["roles"] = _in_checkout(catalog, run, {})
    given = {name: copy for name, copy in copies.items() if options.get(name) not in (None, AUTOMATIC)}
    return paths | {name: _in_checkout(copy, run, files) for name, copy in given.items()}


def _in_checkout(copy: Path, run: RunFolder, files: Mapping[str, str]) -> str:
    """What names a file with the content of ``copy``: a shipped playbook, one in the commit, or ``copy`` itself."""
    found = sorted(path for path, content in files.items() if content == _content_id(copy))
    playbooks = tuple(f"{folder / PLAYBOOKS}/" for folder in definition_folders())
    if shipped := [path for path in found if path.startswith(playbooks)]:
        return Path(shipped[0]).stem
    committed = [path for path in found if not path.startswith("/")]
    if not committed:
        return f"{RunPlace.runs_dir}/{run.run_id}/{copy.relative_to(run.path)}"
    path = min(committed, key=lambda path: Path(path).name != copy.name)
    return path if "/" in path else f"./{path}"


def _content_id(file: Path) -> str:
    content = file.read_bytes() if file.exists() else b""
    return sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()  # as git does


def _is_exact_in_a_block(line: str) -> bool:
    return line.isprintable() and code_block([line])[1] == line


def _options(recorded: Mapping[str, Any], paths: Mapping[str, str], settings: str) -> Iterator[str]:
    """The options of ``run`` that count in any checkout, with its ``paths``, unless they follow from all else."""
    if recorded.get("playbook") or recorded.get("replay"):
        settings += "cycles flow" if recorded.get("replay") else "cycles"  # which these may suggest
    for name, option in all_options().items():
        value = paths.get(name, recorded.get(name))
        is_local = Use.LOCAL in option.use and name not in (*paths, "replay_match")
        if not is_local and value not in (None, "", [], {}) and (value != option.default or name in settings):
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
