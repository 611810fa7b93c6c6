"""What is wrong with the folder of a run that a process has just left, however that process ended."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from codex_multi_role.errors import ExitCode
from codex_multi_role.run_folder import RunFolder, list_turns
from tests.support.teams import Record, read

PROVIDER_OUTCOMES = frozenset({"bad_request", "not_found", "provider_error", "refused", "unreachable"})
PROCESS_OUTCOMES = frozenset({"crashed", "interrupted", "stalled", "start_failed", "timed_out"})
HONEST_OUTCOMES = PROVIDER_OUTCOMES | PROCESS_OUTCOMES | {"empty_answer", "invalid_reply"}
WITHOUT_CODEX = frozenset({"check_failed", "storage_failed"})
"""Outcomes of a run that stopped between two turns, or with a turn done and not yet in its history."""
TURN_ENDS = frozenset({"completed", "invalid_reply", "interrupted", "failed"})
INTERRUPTED_TURN_ENDS = frozenset({"stalled", "crashed", "timed_out"})
SECOND_PROCESS = re.compile(r"\.\d+$")


def findings(
    run: RunFolder, exit_code: int, honest: Collection[str], turn_ends: Collection[str | None], resumes: range
) -> list[str]:
    """``honest``: outcomes with which it may have stopped short. ``resumes``: how many ``run.json`` may count."""
    return [
        *_wrong_ending(run.record(), exit_code, honest),
        *_wrong_totals(run, resumes),
        *_wrong_turns(run, turn_ends),
        *_wrong_history(run),
        *_wrong_events(run),
    ]


def wrong_output(output: Path, exit_code: int) -> Iterator[str]:
    """A traceback on the screen is never meant, and neither is a failure without a word."""
    text = output.read_text(encoding="utf-8", errors="replace")
    if "Traceback (most recent call last)" in text:
        yield f"a traceback: {text[text.index('Traceback') :][-600:]}"
    if exit_code and not text.strip():
        yield f"exit code {exit_code}, without a word"


def disordered(run: RunFolder) -> Iterator[str]:
    """Where no two turns were under way at once, those of a role are in the history in their order."""
    latest: dict[str, int] = {}
    for entry in read(run.state_path)["history"]:
        role, number = entry["role"], entry["turn"]
        if number <= (before := latest.get(role, 0)):
            yield f"the history has {role}/turn_{number:03d} after turn {before}"
        latest[role] = number


def _wrong_ending(record: Record, exit_code: int, honest: Collection[str]) -> Iterator[str]:
    """The process and ``run.json`` agree, and a run that stopped short says why, in a line."""
    if record["exit_code"] != exit_code or not record["ended_at"]:
        yield f"exit code {exit_code}, but run.json says {record['exit_code']}, ended at {record['ended_at']}"
    if record["status"] == "succeeded":
        return
    if (record["status"], record["outcome"], exit_code) == ("failed", "codex_unavailable", ExitCode.WRONG_USAGE):
        return  # the sandbox did not answer before the first turn
    if (record["status"], exit_code) != ("failed", ExitCode.FAILED) or record["outcome"] not in honest:
        yield f"ended as {record['status']}, {record['outcome']}, exit code {exit_code}: {record['reason']}"
    elif not record["reason"] or "\n" in record["reason"]:
        yield f"it does not say in a line why it stopped: {record['reason']!r}"


def _wrong_totals(run: RunFolder, resumes: range) -> Iterator[str]:
    record = run.record()
    turns = [turn.result() for _, turn in list_turns(run)]
    found = {
        "turns": len(turns),
        "repairs": sum(turn.get("repair_of") is not None for turn in turns),
        "input_tokens": sum(turn.get("tokens", {}).get("input", 0) for turn in turns),
        "output_tokens": sum(turn.get("tokens", {}).get("output", 0) for turn in turns),
    }
    told = {name: record["totals"].get(name) for name in found}
    if told != found:
        yield f"run.json counts {told}, there are {found}"
    if len(record["resumed_at"]) not in resumes:
        yield f"run.json counts {len(record['resumed_at'])} resumes, not {resumes}"


def _wrong_turns(run: RunFolder, ends: Collection[str | None]) -> Iterator[str]:
    """Every turn has an end: a process that is gone leaves none running."""
    for instance, turn in list_turns(run):
        if (status := turn.result().get("status")) not in ends:
            yield f"{instance}/{turn.path.name} ended as {status}"


def _wrong_history(run: RunFolder) -> Iterator[str]:
    """Each handoff of a completed turn is in ``controller_state.json``, once, and nothing else is."""
    left = Counter(
        _key(SECOND_PROCESS.sub("", instance), turn.number, turn.handoff())
        for instance, turn in list_turns(run)
        if turn.result().get("status") == "completed"
    )
    told = Counter(_key(each["role"], each["turn"], each["handoff"]) for each in read(run.state_path)["history"])
    if run.record()["outcome"] not in WITHOUT_CODEX:
        yield from (f"not in controller_state.json: {each}" for each in (left - told).elements())
    yield from (f"in controller_state.json, but of no turn: {each}" for each in (told - left).elements())


def _key(role: str, turn: int, handoff: object) -> str:
    return f"{role}, turn {turn}: {json.dumps(handoff, sort_keys=True)}"


def _wrong_events(run: RunFolder) -> Iterator[str]:
    """Each line of every ``events.jsonl`` is an object; the last of the run's own tells its end."""
    for path in [run.events_path, *sorted(run.path.glob("*/events.jsonl"))]:
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1], start=1):
            if not _is_object(line):
                yield f"{path.parent.name}/{path.name}, line {number} cannot be read: {line[:100]}"
    last = run.events_path.read_text(encoding="utf-8").rstrip("\n").rpartition("\n")[2]
    if '"type":"run_ended"' not in last.replace(" ", ""):
        yield f"events.jsonl ends with {last[:100]}"


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
