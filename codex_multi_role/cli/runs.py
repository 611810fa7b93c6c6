"""``runs`` and ``show``: the recorded runs, and what happened in one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from codex_multi_role.cli.options import JSON, RUNS_DIR, command, run_argument
from codex_multi_role.cli.output import put_json, put_line, put_table, say
from codex_multi_role.errors import StorageError
from codex_multi_role.presentation.outcome import (
    ending_in_words,
    exit_in_words,
    next_from_record,
    status_in_words,
)
from codex_multi_role.presentation.plain import question_lines
from codex_multi_role.presentation.recorded import (
    open_questions,
    read_record,
    read_tests,
    read_turns,
    status_now,
    totals_now,
)
from codex_multi_role.presentation.wording import compact, duration, moment, one_line, plural, verdict
from codex_multi_role.run_folder import Question, RunFolder, list_runs, read_events
from codex_multi_role.run_folder.states import read_states

RUN_HEADINGS = ("run", "started", "flow", "status", "outcome", "turns", "tokens", "goal")
TURN_HEADINGS = ("role", "turn", "status", "tokens in", "out", "seconds", "about")
PLACES = {
    "run.json": "summary of the run",
    "report.html": "everything on one page, for a browser",
    "answer.md": "the answer",
    "controller_state.json": "the latest answer of each role, and all answers in order",
    "events.jsonl": "all events, in order",
    "states.json": "the states of the run and its tasks over time",
    "catalog": "the roles and flows it ran with",
}


@command(RUNS_DIR, JSON, short_help="List the runs.")
def runs(runs_dir: Path, json: bool) -> None:
    """List the runs in --runs-dir, oldest first.

    \b
    Examples:
      codex-multi-role runs
      codex-multi-role runs --json | jq -r '.[].run_id'
    """
    records = [
        {
            "run_id": folder.run_id,
            **record,
            "status": status_now(folder, record),
            "totals": totals_now(folder, record),
            "questions": list(map(asdict, open_questions(folder, record))),
        }
        for folder in list_runs(runs_dir)
        for record in [read_record(folder)]
    ]
    if json:
        put_json(records)
    elif records:
        put_table(RUN_HEADINGS, map(_run_row, records), numbers=("turns", "tokens"))
    else:
        say(f"There are no runs in {runs_dir}.")


def _run_row(record: dict[str, Any]) -> list[object]:
    totals = record["totals"]
    return [
        record["run_id"],
        _started(record),
        record.get("flow"),
        record["status"],
        _outcome(record),
        totals.get("turns", 0),
        compact(totals.get("input_tokens", 0) + totals.get("output_tokens", 0)),
        record.get("goal") or record.get("reason"),
    ]


def _outcome(record: dict[str, Any]) -> str:
    """Return what the run waits for, or how it ended."""
    asked = [f"{question['key']}: {question['question']}" for question in record["questions"]]
    return "; ".join(asked) or record.get("outcome") or ""


def _started(record: dict[str, Any]) -> str:
    started = record.get("started_at")
    return f"{moment(started):%Y-%m-%d %H:%M}" if started else ""


@command(RUNS_DIR, JSON, short_help="Show what happened in a run, turn by turn.")
@run_argument
@click.option(
    "--svg",
    "picture_path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a picture of the final view of the run to FILE instead.",
)
def show(run: str, picture_path: Path | None, runs_dir: Path, json: bool) -> None:
    """Show what happened in RUN (default: the latest run), turn by turn, and where to find the details.

    \b
    Examples:
      codex-multi-role show
      codex-multi-role show 2026 --json
      codex-multi-role show --svg run.svg
    """
    folder = RunFolder.find(runs_dir, run)
    if picture_path:
        _draw(folder, picture_path)
        return
    record = folder.record()
    record |= {"status": status_now(folder, record), "totals": totals_now(folder, record)}
    turns, tests, questions = read_turns(folder), read_tests(folder), open_questions(folder, record)
    states = read_states(folder)
    following = next_from_record(folder, runs_dir, record, record["status"]) or None
    if json:
        asked = list(map(asdict, questions))
        shown = {"run": record, "folder": str(folder.path), "questions": asked, "turns": turns, "tests": tests}
        put_json({**shown, "states": states, "next": following})
        return
    for line in [*_heading(folder, record), *_questions(questions), *_states(states)]:
        put_line(line)
    click.echo()
    put_table(TURN_HEADINGS, map(_turn_row, turns), numbers=("turn", "tokens in", "out", "seconds"))
    for line in [*_tests(tests), "", *_places(folder), *(["", f"next: {following}"] if following else [])]:
        put_line(line)


def _draw(folder: RunFolder, path: Path) -> None:
    from codex_multi_role.cli.live import picture  # here: only pictures need the live view
    from codex_multi_role.presentation.progress import Progress

    try:
        path.write_text(picture(Progress.of(read_events(folder.events_path))), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"--svg: {path}: {error.strerror}") from error
    say(f"wrote {path}")


def _heading(folder: RunFolder, record: dict[str, Any]) -> Iterator[str]:
    totals = record["totals"]
    yield f"run        {folder.run_id}"
    yield f"goal       {one_line(record.get('goal', ''), 500)}"
    yield f"flow       {record.get('flow')}, {plural(_cycles(record), 'cycle')}"
    if origin := record.get("forked_from"):
        yield f"fork       of {origin['run_id']}, before {origin['step']}:{origin['visit']}"
    yield f"workspace  {record.get('workspace')}"
    yield f"status     {record['status']}: {ending_in_words(record['status'], record.get('outcome') or '')}"
    if record.get("reason"):
        yield f"reason     {one_line(record['reason'], 500)}"
    if record.get("exit_code") is not None:
        yield f"exit       {exit_in_words(record['exit_code'], '')}"
    if record.get("playbook"):
        yield f"playbook   {record['playbook']} (no model was asked)"
    yield (
        f"totals     {plural(totals.get('turns', 0), 'turn')}, {plural(totals.get('repairs', 0), 'repair')}, "
        f"{totals.get('input_tokens', 0):,} tokens in, {totals.get('output_tokens', 0):,} out, "
        f"{duration(totals.get('seconds', 0))}"
    )


def _questions(questions: list[Question]) -> Iterator[str]:
    for question in questions:
        first, *rest = question_lines(question)
        yield from (f"question   {first.removeprefix('review ')}", *rest)


def _states(states: dict[str, Any]) -> Iterator[str]:
    if states["run"]:
        yield f"states     {_history(states['run'])}"
    for each in states["items"]:
        why = f": {one_line(each['reason'], 500)}" if each["reason"] else ""
        yield f"task       {one_line(each['item'])} ({each['unit']}): {_history(each)}{why}"


def _history(told: dict[str, Any]) -> str:
    return " → ".join(each["state"] for each in told["history"])


def _cycles(record: dict[str, Any]) -> int:
    return int(record["options"]["cycles"])


def _turn_row(turn: dict[str, Any]) -> list[object]:
    tokens = turn.get("tokens") or {}
    repair = f"repairs turn {turn['repair_of']}. " if turn.get("repair_of") else ""
    if turn.get("continues"):
        repair = f"continues turn {turn['continues']}. "
    inherited = "inherited. " if turn.get("inherited") else ""
    return [
        turn["role"],
        turn["turn"],
        status_in_words(turn.get("status", "unknown")),
        f"{tokens.get('input', 0):,}",
        f"{tokens.get('output', 0):,}",
        f"{turn.get('seconds', 0):.1f}",
        f"{inherited}{repair}{turn.get('reason') or turn.get('summary') or ''}",
    ]


def _tests(tests: list[dict[str, Any]]) -> list[str]:
    return ["", *(f"tests {test['number']:03d}  {verdict(test)}" for test in tests)] if tests else []


def _places(folder: RunFolder) -> Iterator[str]:
    yield f"look in {folder.path.resolve()}"
    yield from (f"  {name:<22} {what}" for name, what in PLACES.items() if (folder.path / name).exists())
    yield f"  {'<role>/turn_<nnn>/':<22} prompt.txt, assistant_text.txt, handoff.json, changes.patch, turn.json"
    yield f"  {'<role>/events.jsonl':<22} every message to and from that role's Codex process"
