"""``runs`` and ``show``: the recorded runs, and what happened in one, in the order it began."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from codex_multi_role.cli.options import JSON, RUNS_DIR, command, run_argument
from codex_multi_role.cli.output import put_json, put_line, put_table, put_text, say
from codex_multi_role.cli.run_additions import all_records, find_run, open_remote, place_column, told
from codex_multi_role.cli.setting import output_file
from codex_multi_role.cli.tables import Column
from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import (
    WAITING,
    cost_of_totals,
    ending_in_words,
    exit_in_words,
    glyphs_of,
    has_failed,
    next_from_record,
    run_status,
    status_in_words,
)
from codex_multi_role.presentation.plain import question_lines
from codex_multi_role.presentation.recorded import (
    RecordedRun,
    Records,
    open_questions,
    read_tests,
    read_turns,
    status_now,
    totals_now,
)
from codex_multi_role.presentation.result import result_lines, result_of, whole_text
from codex_multi_role.presentation.tree import UNLIMITED, Tree
from codex_multi_role.presentation.wording import (
    ago,
    compact,
    costs_by_step,
    duration,
    moment,
    one_line,
    plural,
    price,
)
from codex_multi_role.run_folder import Question, RunFolder
from codex_multi_role.run_folder.cost import Cost

COLUMNS = (
    *("run", Column("state", text=20, has_tone=True), "started", Column("flow", from_width=100)),
    *(Column("turns", number=True, from_width=100), Column("tokens", number=True, from_width=110)),
    *(Column("cost", number=True, from_width=110), Column("goal", text=12, from_width=76)),
)
NEVER = "0001-01-02T00:00:00+00:00"
UNSAID = ("done", "success", "cancelled")
"""Outcomes that say no more than the status."""
PERIOD = re.compile(r"(\d+) ?(min|h|d)")
PLACES = {
    "run.json": "summary of the run",
    "report.html": "everything on one page, for a browser",
    "answer.md": "the answer",
    "controller_state.json": "the latest answer of each role, and all answers in order",
    "events.jsonl": "all events, in order",
    "states.json": "the states of the run and its tasks over time",
    "catalog": "the roles and flows it ran with",
}


def _since(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        if period := PERIOD.fullmatch(value):
            minutes = {"min": 1, "h": 60, "d": 24 * 60}[period[2]]
            return datetime.now(UTC) - timedelta(minutes=int(period[1]) * minutes)
        return moment(value)
    except (ValueError, OverflowError) as error:
        told = f"'{value}' is neither a period, such as 30min, 2h or 3d, nor a date, such as 2026-01-31"
        raise click.BadParameter(told, ctx, param) from error


@command(RUNS_DIR, JSON, finds=True)
@click.option("--failed", is_flag=True, help="Only runs that failed or ended without reaching their goal.")
@click.option("--since", metavar="WHEN", callback=_since, help="Only runs started since 30min, 2h, 3d or a date.")
def runs(failed: bool, since: datetime | None, runs_dir: Path, json: bool) -> None:
    """List the runs in --runs-dir, oldest first.

    \b
    Examples:
      codex-multi-role runs
      codex-multi-role runs --failed --since 3d
      codex-multi-role runs --json | jq -r '.[].run_id'
    """
    remote = open_remote()
    found = all_records(Records(runs_dir), remote)
    records = [
        _current(run) for run in found if since is None or moment(run.record.get("started_at") or NEVER) >= since
    ]
    records = [record for record in records if not failed or has_failed(record["status"])]
    if json:
        put_json(records)
    elif records:
        tones = [run_status(_status(record)).tone for record in records]
        columns = COLUMNS if remote is None else (*COLUMNS[:2], place_column(), *COLUMNS[2:])
        put_table(columns, map(_run_row if remote is None else _shared_row, records), tones)
    else:
        say(f"There are no{' such' if found else ''} runs in {runs_dir}{f' and in {remote}' if remote else ''}.")


def _current(run: RecordedRun) -> dict[str, Any]:
    """Return ``run.json`` with what is true now: reads nothing else of a run that ended."""
    folder, record = run.folder, run.record
    return {
        "run_id": folder.run_id,
        **record,
        "status": status_now(folder, record),
        "totals": totals_now(folder, record),
        "questions": list(map(asdict, open_questions(folder, record))),
    }


def _run_row(record: dict[str, Any]) -> list[object]:
    totals = record["totals"]
    return [
        record["run_id"],
        _state(record),
        ago(record.get("started_at") or ""),
        record.get("flow"),
        totals.get("turns", 0),
        compact(totals.get("input_tokens", 0) + totals.get("output_tokens", 0)),
        price(Cost.of_totals(totals)),
        record.get("goal") or record.get("reason"),
    ]


def _shared_row(record: dict[str, Any]) -> list[object]:
    run, state, *others = _run_row(record)
    return [run, state, told(record).who, *others]


def _status(record: dict[str, Any]) -> str:
    return WAITING if record["questions"] else str(record["status"])


def _state(record: dict[str, Any]) -> str:
    """``ended: cycles used up``, ``waiting for you: plan.1: Is this the plan?``."""
    asked = [f"{question['key']}: {question['question']}" for question in record["questions"]]
    outcome = record.get("outcome") or ""
    how = "; ".join(asked) or ("" if outcome in UNSAID else status_in_words(outcome)) or told(record).why
    return ": ".join(filter(None, (run_status(_status(record)).words, how)))


@command(RUNS_DIR, JSON, finds=True)
@run_argument
@click.option("--result", "only_result", is_flag=True, help="Print only the text of the result, all of it.")
@output_file("--svg", "picture_path", help="Write a picture of the final view of the run to FILE instead.")
def show(run: str, only_result: bool, picture_path: Path | None, runs_dir: Path, json: bool) -> None:
    """Show the result of RUN (default: the latest run), what happened in order, and where to find the details.

    \b
    Examples:
      codex-multi-role show
      codex-multi-role show 2026 --json
      codex-multi-role show --result > answer.md
      codex-multi-role show --svg run.svg
    """
    folder = find_run(run, runs_dir)
    if picture_path:
        _draw(folder, picture_path)
        return
    record = folder.record()
    record["hint"] = folder.complete(str(record.get("hint") or ""))
    result = result_of(folder, record)
    if only_result:
        text = whole_text(folder, record)
        if text is None:
            raise UsageError(
                f"run {folder.run_id} has no result", f"`{folder.command('show')}` shows what happened in it."
            )
        put_text(text, exact=True)
        return
    record |= {"status": status_now(folder, record), "totals": totals_now(folder, record)}
    course = Course.of_run(folder)
    turns, tests, questions = read_turns(folder, course.turns), read_tests(folder), open_questions(folder, record)
    following = next_from_record(folder, record, record["status"]) or None
    if json:
        asked = list(map(asdict, questions))
        shown = {"run": record, "folder": str(folder.path), "questions": asked, "turns": turns, "tests": tests}
        steps = {step: cost.as_json() for step, cost in course.step_costs.items()}
        put_json(
            {
                **shown,
                "states": course.states_as_json(),
                "steps": steps,
                "work": course.run.as_json()["parts"],
                "next": following,
            }
        )
        return
    told = [] if result is None else [*result_lines(result, folder.command("show", "--result")), ""]
    moved = [f"states     {' → '.join(state for state, *_ in course.run.history)}"] if course.run.history else []
    for line in [*told, *_heading(folder, record, course), *_questions(questions), *moved]:
        put_line(line)
    put_line("")
    _put_tree(course)
    for line in ["", *_places(folder), *(["", f"next: {following}"] if following else [])]:
        put_line(line)


def _put_tree(course: Course) -> None:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED
    for row in Tree(course, course.at, whole=True).rows():
        put_line(row.line(width, glyphs_of(sys.stdout.encoding)))


def _draw(folder: RunFolder, path: Path) -> None:
    from codex_multi_role.cli.live import picture  # here: only pictures need the live view

    try:
        path.write_text(picture(Course.of_run(folder)), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"--svg: {path}: {error.strerror}") from error
    say(f"wrote {path}")


def _heading(folder: RunFolder, record: dict[str, Any], course: Course) -> Iterator[str]:
    totals, cycles = record["totals"], course.started.cycles
    yield f"run        {folder.run_id}"
    yield f"goal       {one_line(record.get('goal', ''), 500)}"
    yield f"flow       {record.get('flow')}" + (f", {plural(cycles, 'cycle')}" if cycles else "")
    if origin := record.get("forked_from"):
        yield f"fork       of {origin['run_id']}, before {origin['step']}:{origin['visit']}"
    if workspace := record.get("workspace"):
        yield f"workspace  {workspace}{told(record).where}"
    yield f"status     {record['status']}: {ending_in_words(record['status'], record.get('outcome') or '')}"
    yield from told(record).lines
    if record.get("reason"):
        yield f"reason     {one_line(record['reason'], 500)}"
    if record.get("hint"):
        yield f"hint       {one_line(record['hint'], 2000)}"
    if record.get("exit_code") is not None:
        yield f"exit       {exit_in_words(record['exit_code'], '')}"
    if record.get("playbook"):
        yield f"playbook   {record['playbook']} (no model was asked)"
    yield (
        f"totals     {plural(totals.get('turns', 0), 'turn')}, {plural(totals.get('repairs', 0), 'repair')}, "
        f"{totals.get('input_tokens', 0):,} tokens in, {totals.get('output_tokens', 0):,} out, "
        f"{duration(totals.get('seconds', 0))}"
    )
    yield f"cost       {cost_of_totals(totals)}"
    if steps := costs_by_step(course.step_costs):
        yield f"by step    {steps}"


def _questions(questions: list[Question]) -> Iterator[str]:
    for question in questions:
        first, *rest = question_lines(question)
        yield from (f"question   {first.removeprefix('review ')}", *rest)


def _places(folder: RunFolder) -> Iterator[str]:
    yield f"look in {folder.path.resolve()}"
    yield from (f"  {name:<22} {what}" for name, what in PLACES.items() if (folder.path / name).exists())
    yield f"  {'<role>/turn_<nnn>/':<22} prompt.txt, assistant_text.txt, handoff.json, changes.patch, turn.json"
    yield f"  {'<role>/events.jsonl':<22} every message to and from that role's Codex process"
