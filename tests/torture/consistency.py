"""What the folder of a run that has ended says that cannot be true."""

from __future__ import annotations

import json
from collections.abc import Iterator

from codex_multi_role.run_folder import RunFolder, TurnFolder, list_turns
from tests.support.teams import read

ENDS = {"completed", "invalid_reply", "interrupted", "failed"}


def inconsistencies(run: RunFolder, resumes: range, in_order: bool) -> list[str]:
    """``resumes``: how many ``run.json`` may tell of. ``in_order``: no two turns were under way at once."""
    return [
        *_wrong_record(run, resumes),
        *_wrong_turns(run),
        *_wrong_history(run, in_order),
        *_wrong_events(run),
    ]


def _wrong_record(run: RunFolder, resumes: range) -> Iterator[str]:
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
        yield f"run.json tells of {told}, there are {found}"
    if len(record["resumed_at"]) not in resumes:
        yield f"run.json tells of {len(record['resumed_at'])} resumes, not {resumes}"
    if not record["ended_at"]:
        yield "run.json tells of no end"


def _wrong_turns(run: RunFolder) -> Iterator[str]:
    for instance, turn in list_turns(run):
        if (status := turn.result().get("status")) not in ENDS:
            yield f"{instance}/{turn.path.name} ended as {status}"


def _wrong_history(run: RunFolder, in_order: bool) -> Iterator[str]:
    """Every entry has a completed turn of its own, of one of its role's instances."""
    turns = [(instance, turn) for instance, turn in list_turns(run) if turn.result().get("status") == "completed"]
    numbers: dict[str, int] = {}
    for entry in read(run.state_path)["history"]:
        role, number = entry["role"], entry["turn"]
        its = [each for each in turns if _is_of(*each, entry)]
        if its:
            turns.remove(its[0])
        else:
            yield f"the history's {role}/turn_{number:03d} is no turn that its folder holds"
        if in_order and number <= numbers.get(role, 0):
            yield f"the history has {role}/turn_{number:03d} after turn {numbers[role]}"
        numbers[role] = number


def _is_of(instance: str, turn: TurnFolder, entry: dict[str, object]) -> bool:
    return (instance.split(".")[0], turn.number, turn.handoff()) == (entry["role"], entry["turn"], entry["handoff"])


def _wrong_events(run: RunFolder) -> Iterator[str]:
    lines = run.events_path.read_text(encoding="utf-8").splitlines()
    try:
        events = [json.loads(line) for line in lines]
    except ValueError as error:
        yield f"events.jsonl: {error}"
        return
    if events[-1]["type"] != "run_ended":
        yield f"events.jsonl ends with {events[-1]['type']}"
