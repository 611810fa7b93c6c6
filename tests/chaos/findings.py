"""What the folder of a disturbed run must say, however the run ended."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from codex_multi_role.run_folder import RunFolder, list_turns
from tests.support.teams import read

HONEST_REASONS = {
    "bad_request",
    "not_found",
    "crashed",
    "empty_answer",
    "interrupted",
    "invalid_reply",
    "provider_error",
    "refused",
    "stalled",
    "start_failed",
    "timed_out",
    "unreachable",
}
FAILED = 3
TURN_ENDS = {"completed", "invalid_reply", "interrupted", "failed", "stalled", "crashed", "timed_out"}
SECOND_PROCESS = re.compile(r"\.\d+$")


def wrong_ending(run: RunFolder, exit_code: int, honest: Collection[str] = HONEST_REASONS) -> Iterator[str]:
    """The process and ``run.json`` agree, and a run that stopped short says why, which is one of ``honest``."""
    record = run.record()
    if record["exit_code"] != exit_code or not record["ended_at"]:
        yield f"exit code {exit_code}, but run.json says {record['exit_code']}, ended at {record['ended_at']}"
    if record["status"] == "succeeded":
        return
    if (record["status"], exit_code) != ("failed", FAILED) or record["outcome"] not in honest:
        yield f"ended as {record['status']}, {record['outcome']}, exit code {exit_code}: {record['reason']}"
    elif not record["reason"]:
        yield "it does not say why it stopped"


def wrong_turns(run: RunFolder) -> Iterator[str]:
    """Every turn has an end; a process that is gone leaves none running."""
    for role, turn in list_turns(run):
        if (status := turn.result().get("status")) not in TURN_ENDS:
            yield f"{role}/{turn.path.name} ended as {status}"


def lost_handoffs(run: RunFolder) -> Iterator[str]:
    """Each handoff of a finished turn is in ``controller_state.json``, once, and nothing else is."""
    left = Counter(
        _key(SECOND_PROCESS.sub("", instance), turn.number, turn.handoff())
        for instance, turn in list_turns(run)
        if turn.result().get("status") == "completed"
    )
    told = Counter(_key(each["role"], each["turn"], each["handoff"]) for each in read(run.state_path)["history"])
    yield from (f"not in controller_state.json: {each}" for each in (left - told).elements())
    yield from (f"in controller_state.json, but of no turn: {each}" for each in (told - left).elements())


def _key(role: str, turn: int, handoff: Any) -> str:
    return f"{role}, turn {turn}: {json.dumps(handoff, sort_keys=True)[:200]}"


def unreadable(run: RunFolder) -> Iterator[str]:
    """Each line of every ``events.jsonl`` is an object; the last of the run's own tells its end."""
    for path in [run.events_path, *sorted(run.path.glob("*/events.jsonl"))]:
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1], start=1):
            if not _is_object(line):
                yield f"{path.parent.name}/{path.name}, line {number} cannot be read: {line[:100]}"
    told = run.events_path.read_text(encoding="utf-8").rstrip("\n").rpartition("\n")[2]
    if '"type":"run_ended"' not in told.replace(" ", ""):
        yield f"events.jsonl ends with {told[:100]}"


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def complaints(output: Path) -> Iterator[str]:
    """A traceback on the screen is never meant."""
    text = output.read_text(encoding="utf-8", errors="replace")
    if "Traceback (most recent call last)" in text:
        yield f"a traceback: {text[text.index('Traceback') :][-600:]}"


def wrong(run: RunFolder, exit_code: int, output: Path, honest: Collection[str] = HONEST_REASONS) -> list[str]:
    return [
        *wrong_ending(run, exit_code, honest),
        *wrong_turns(run),
        *lost_handoffs(run),
        *unreadable(run),
        *complaints(output),
    ]
