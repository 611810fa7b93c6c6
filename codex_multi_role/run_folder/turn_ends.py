"""The ends of turns that their own session recorded but did not publish, because it was killed first."""

from __future__ import annotations

from codex_multi_role.run_folder.event_log import skim_events
from codex_multi_role.run_folder.events import TurnEnded, TurnStarted
from codex_multi_role.run_folder.folder import RunFolder
from codex_multi_role.run_folder.turn_folder import REUSED, TurnFolder, origin_in_words


def unpublished_ends(folder: RunFolder) -> list[TurnEnded]:
    """One event per turn that started and has no published end, in order, at the time of the latest event.

    No process may be working on the run, and `close_unfinished` has marked the turns that a kill cut short.
    """
    at = ""
    running: dict[tuple[str, int], None] = {}
    for event in skim_events(folder.events_path, (TurnStarted, TurnEnded)):
        at = event.at or at
        match event:
            case TurnStarted():
                running[event.role, event.turn] = None
            case TurnEnded():
                running.pop((event.role, event.turn), None)
    turns = ((role, TurnFolder.of(folder, role, number)) for role, number in running)
    return [_end_of(role, turn, at) for role, turn in turns if turn.result()]


def _end_of(role: str, turn: TurnFolder, at: str) -> TurnEnded:
    result, handoff = turn.result(), turn.handoff()
    tokens = result.get("tokens", {})
    summary = handoff.get("summary", "") if isinstance(handoff, dict) else ""
    return TurnEnded(
        role=role,
        turn=turn.number,
        status=str(result["status"]),
        outcome=str(result.get("outcome", "")),
        reason=str(result.get("reason", "")),
        input_tokens=tokens.get("input", 0),
        output_tokens=tokens.get("output", 0),
        seconds=result.get("seconds", 0.0),
        summary=turn.redact(str(summary))[:200],
        worked_seconds=result.get("worked_seconds"),
        cost=result.get("cost"),
        reused_from=origin_in_words(result.get(REUSED) or {}),
        at=at,
    )
