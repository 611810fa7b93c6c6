"""``runs`` and ``show``: the recorded runs, and what happened in one, in the order it began."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from codex_multi_role.cli.options import JSON, RUNS_DIR, command, run_argument
from codex_multi_role.cli.output import put_json, put_line, put_table, put_text, say
from codex_multi_role.cli.run_additions import place_column, told
from codex_multi_role.cli.run_reference import all_records, find_run, open_remote
from codex_multi_role.cli.setting import output_file
from codex_multi_role.cli.tables import Column
from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.presentation.outcome import (
    cost_of_totals,
    ending_in_words,
    exit_in_words,
    next_from_record,
    status_in_words,
)
from codex_multi_role.presentation.plain import question_lines
from codex_multi_role.presentation.progress import Progress
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
from codex_multi_role.presentation.story import Note, ReportedTurn, Story, TestRun, TimedPart, in_order
from codex_multi_role.presentation.wording import (
    answer_in_words,
    clock,
    compact,
    cost_in_words,
    costs_by_step,
    duration,
    failed_tests,
    judged,
    moment,
    one_line,
    plural,
    verdict,
)
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.run_folder import Question, Questions, RunFolder, read_events
from codex_multi_role.run_folder.cost import Cost

COLUMNS = (
    *("run", "status", "started", "flow", Column("outcome", text=16)),
    *(Column("turns", number=True), Column("tokens", number=True), Column("cost", number=True)),
    Column("goal", text=24),
)
HISTORY = (
    *(Column("at"), Column("who"), Column("turn", number=True), Column("status")),
    *(Column("tokens in", number=True), Column("out", number=True), Column("cost", number=True)),
    Column("seconds", number=True),
    Column("about", text=24),
)
PLACES = {
    "run.json": "summary of the run",
    "report.html": "everything on one page, for a browser",
    "answer.md": "the answer",
    "controller_state.json": "the latest answer of each role, and all answers in order",
    "events.jsonl": "all events, in order",
    "states.json": "the states of the run and its tasks over time",
    "catalog": "the roles and flows it ran with",
}
Row = list[object]
Record = Mapping[str, Any]


@command(RUNS_DIR, JSON, finds=True)
def runs(runs_dir: Path, json: bool) -> None:
    """List the runs in --runs-dir, oldest first.

    \b
    Examples:
      codex-multi-role runs
      codex-multi-role runs --json | jq -r '.[].run_id'
    """
    remote = open_remote()
    records = [_current(run) for run in all_records(Records(runs_dir), remote)]
    if json:
        put_json(records)
    elif records and remote is not None:
        put_table((*COLUMNS[:2], place_column(), *COLUMNS[2:]), map(_shared_row, records))
    elif records:
        put_table(COLUMNS, map(_run_row, records))
    else:
        say(f"There are no runs in {runs_dir}{f' and in {remote}' if remote else ''}.")


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
        record["status"],
        _started(record),
        record.get("flow"),
        _outcome(record),
        totals.get("turns", 0),
        compact(totals.get("input_tokens", 0) + totals.get("output_tokens", 0)),
        cost_in_words(Cost.of_totals(totals)),
        record.get("goal") or record.get("reason"),
    ]


def _shared_row(record: dict[str, Any]) -> list[object]:
    run, status, *others = _run_row(record)
    return [run, status, told(record).who, *others]


def _outcome(record: dict[str, Any]) -> str:
    """Return what the run waits for, or how it ended."""
    asked = [f"{question['key']}: {question['question']}" for question in record["questions"]]
    return "; ".join(asked) or record.get("outcome") or told(record).why


def _started(record: dict[str, Any]) -> str:
    started = record.get("started_at")
    return f"{moment(started):%Y-%m-%d %H:%M}" if started else ""


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
        _put_result(folder, record)
        return
    record |= {"status": status_now(folder, record), "totals": totals_now(folder, record)}
    story = Story.of_run(folder)
    turns, tests, questions = read_turns(folder, story.turns), read_tests(folder), open_questions(folder, record)
    states = story.states.as_json()
    following = next_from_record(folder, record, record["status"]) or None
    if json:
        asked = list(map(asdict, questions))
        shown = {"run": record, "folder": str(folder.path), "questions": asked, "turns": turns, "tests": tests}
        steps = {step: cost.as_json() for step, cost in story.progress.step_costs.items()}
        put_json({**shown, "states": states, "steps": steps, "next": following})
        return
    told = [] if result is None else [*result_lines(result, folder.command("show", "--result")), ""]
    for line in [*told, *_heading(folder, record, story.progress), *_questions(questions), *_states(states)]:
        put_line(line)
    put_line("")
    put_table(HISTORY, _history_rows(folder, story, turns, tests))
    for line in ["", *_places(folder), *(["", f"next: {following}"] if following else [])]:
        put_line(line)


def _put_result(folder: RunFolder, record: dict[str, Any]) -> None:
    text = whole_text(folder, record)
    if text is None:
        raise UsageError(f"run {folder.run_id} has no result", f"`{folder.command('show')}` shows what happened in it.")
    put_text(text, exact=True)


def _draw(folder: RunFolder, path: Path) -> None:
    from codex_multi_role.cli.live import picture  # here: only pictures need the live view

    try:
        path.write_text(picture(Progress.of(read_events(folder.events_path))), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"--svg: {path}: {error.strerror}") from error
    say(f"wrote {path}")


def _heading(folder: RunFolder, record: dict[str, Any], progress: Progress) -> Iterator[str]:
    totals, cycles = record["totals"], progress.position.cycles
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
    if steps := costs_by_step(progress.step_costs):
        yield f"by step    {steps}"


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


def _places(folder: RunFolder) -> Iterator[str]:
    yield f"look in {folder.path.resolve()}"
    yield from (f"  {name:<22} {what}" for name, what in PLACES.items() if (folder.path / name).exists())
    yield f"  {'<role>/turn_<nnn>/':<22} prompt.txt, assistant_text.txt, handoff.json, changes.patch, turn.json"
    yield f"  {'<role>/events.jsonl':<22} every message to and from that role's Codex process"


def _history_rows(folder: RunFolder, story: Story, turns: Sequence[Record], tests: Sequence[Record]) -> list[Row]:
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
                found.append([at, *_turn_row(turn, known_turns.get((turn.role, turn.number), {}))])
            case TestRun() as run:
                found.append([at, *_tests_row(run, known_tests.get(run.number, {}))])
            case Question() as question:
                found.append([at, *_question_row(question)])
            case Path() as check:
                found.append([at, *_check_row(check.relative_to(folder.path / "checks").as_posix(), check)])
            case Note() as note:
                found.append([at, note.who, "", "noted", "", "", "", "", note.words])
    return found


def _turn_row(turn: ReportedTurn, result: Record) -> Row:
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


def _tests_row(run: TestRun, result: Record) -> Row:
    told = {**vars(run), **result}
    status = judged(told)
    counts = verdict(told).removeprefix(f"{status}: ").removeprefix(status)
    about = ": ".join(filter(None, (counts, failed_tests(told))))
    return [f"tests {run.number:03d}", "", status, "", "", "", _seconds(told), about]


def _question_row(question: Question) -> Row:
    answer = question.answer
    status = "open" if answer is None else answer_in_words(answer.approved, answer.option, answer.values)
    comment = f" {answer.by}: {answer.comment}" if answer is not None and answer.comment else ""
    return [f"review {question.key}", "", status, "", "", "", "", f"{question.question}{comment}"]


def _check_row(key: str, folder: Path) -> Row:
    result = read_object(folder / "result.json")
    status = status_in_words(result.get("status", "ended"))
    return [f"check {key}", "", status, "", "", "", _seconds(result), result.get("reason", "")]


def _seconds(result: Record) -> str:
    seconds = result.get("seconds")
    return f"{seconds:.1f}" if isinstance(seconds, int | float) else ""
