"""After a failed or interrupted attempt at a turn: what it left, how to repeat it, how long to pause, when to park."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import dropwhile
from threading import Event

from codex_multi_role.codex.failures import Remedy, lacks_descriptors
from codex_multi_role.codex.turn_outcome import TurnOutcome
from codex_multi_role.errors import TOO_MANY_FILES, BudgetUsedUp, QuotaUsedUp, RoleFailed, RunInterrupted
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.registry import hint
from codex_multi_role.run_folder import TurnFolder, read_events
from codex_multi_role.run_folder.events import CopyMerged, FilesApplied, RunEvent, TurnEnded, TurnStarted, Warning
from codex_multi_role.run_options import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS
from codex_multi_role.steps.budget import Budget
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.turn_record import NEW_THREAD, TurnPrompt, TurnResult

INTERRUPTED = "interrupted"
ENDED_BY_BUDGET = (INTERRUPTED, "timed_out")
"""The status of a turn that `Budget.exceeded` ended, and of one that had the rest of the run's time."""


def finished_before(run: RunResources, place: int, role: str, *, may_decline: bool) -> TurnResult | None:
    """The turn finished at this journal position, if a kill came before the journal recorded it.

    Any instance of the ``role`` may have taken it, not only the one that is asked now. A turn that ended its role does
    not count, because the role must be asked again. ``may_decline``: a refusal is also an answer.
    """
    left = run.progress.earlier_turns.get(place)
    recorded = left.result().get("recorded") if left else None
    if not recorded:
        return None
    turn = TurnResult(**recorded)
    return turn if turn.role == role and is_settled(turn, may_decline=may_decline) else None


def is_settled(turn: TurnResult, *, may_decline: bool) -> bool:
    """Whether the turn leaves an answer or another turn follows it: it did not end its role."""
    return turn.ask_again or not turn.problem or (turn.declined and may_decline)


def cut_short(run: RunResources, latest: TurnFolder | None, place: int) -> TurnFolder | None:
    """The unfinished earlier attempt at this turn: the instance's ``latest`` turn, or one of an earlier session."""
    if latest and latest.result().get("journal_step") == place:
        return latest
    return run.progress.earlier_turns.get(place)


def kept_by_unfinished_attempt(first_try: TurnFolder | None, threads: Collection[str]) -> Json:
    """What tools stored in a first attempt that produced no answer, if it was on one of these ``threads``.

    Only its own thread remembers the calls; any other repeats them.
    """
    result = first_try.result() if first_try else {}
    is_remembered = not result.get("recorded") and result.get("thread_id") in threads
    return first_try.kept() if first_try and is_remembered else {}


def first_state(run: RunResources, instance: str, first_try: TurnFolder | None) -> str:
    """The workspace before a turn. A repeated turn starts from the state before its first attempt.

    Changes of that attempt are undone and kept as a patch, unless others worked in the workspace at the same time,
    because then nobody can tell whose changes they are. Nobody else works in a copy.
    """
    now = run.snapshots.take()
    first = str(first_try.result().get("snapshot", "")) if first_try else ""
    if first_try is None or not first or first == now:
        return now
    left = f"{instance}: changes that turn {first_try.number} left in the workspace"
    others = (
        run.progress.killed_turns > 1
        or run.progress.running_instances != {instance}
        or _have_others_changed(run, instance, first_try.number)
    )
    if others and not run.copy:
        run.services.events.publish(Warning(f"{left} remain: other roles also changed the workspace"))
        return now
    run.snapshots.write_patch(first, now, first_try.undone_path)
    run.snapshots.restore(first)
    run.services.events.publish(Warning(f"{left} were undone; see {first_try.path}/undone.patch"))
    return first


def _have_others_changed(run: RunResources, instance: str, turn: int) -> bool:
    """Whether others have finished changes to the workspace since that turn began, which would be undone with it."""

    def is_before(event: RunEvent) -> bool:
        return not (isinstance(event, TurnStarted) and (event.role, event.turn) == (instance, turn))

    events = dropwhile(is_before, read_events(run.services.folder.events_path))
    return any(_is_change_of_others(run, instance, event) for event in events)


def _is_change_of_others(run: RunResources, instance: str, event: RunEvent) -> bool:
    """Whether another than ``instance`` changed the workspace with what the event reports."""
    match event:
        case TurnEnded(role, turn):
            return role != instance and TurnFolder.of(run.services.folder, role, turn).patch_path.exists()
        case FilesApplied(role):
            return role != instance
        case _:
            return isinstance(event, CopyMerged)


ADVICE: Mapping[str, str] = {
    "against_policy": "Change the goal or the role's prompt: the provider refuses to answer this prompt.",
    "bad_request": "Check the model (--model, the role's `model`) and the provider's settings.",
    "context_full": "The prompt alone exceeds the model's context: pass less, or use a model with a larger one.",
    "not_found": "Unknown model or address: check the model (--model, the role's `model`) and the provider's base_url.",
    "overloaded": "Try later, or name another model.",
    "rate_limited": "Try later, or with fewer processes at once (--max-processes).",
    "stalled": (
        "If the model may think that long in silence, raise the role's limits.idle_seconds; otherwise check what "
        "keeps Codex from running: low memory, a paused container, a signal."
    ),
    "timed_out": "If its turns may take that long, raise the role's limits.turn_seconds.",
    "unauthorized": "Log in with `codex-multi-role codex login`, or fix the key that the provider's env_key names.",
    "unreachable": "Check the network and the provider's base_url.",
}
"""What helps a role that failed for this reason, besides another attempt; extensions have hints for others."""


def next_try(run: RunResources, asked: TurnPrompt, outcome: TurnOutcome) -> TurnPrompt | None:
    """The prompt to send after ``outcome``, if another attempt is the remedy; otherwise None.

    Raises `BudgetUsedUp` or `QuotaUsedUp` if the run must park, `RunInterrupted` if it was stopped.
    """
    if outcome.reason == BudgetUsedUp.reason and (used_up := run.services.budget.interruption()) is not None:
        raise used_up
    if outcome.reason == RunInterrupted.reason:
        raise RunInterrupted
    if outcome.remedy is Remedy.PARK:
        raise _quota(run, asked, outcome)
    if outcome.remedy is Remedy.RETRY:
        return replace(asked, opened=True)
    if outcome.remedy is Remedy.FRESH_THREAD and asked.thread != NEW_THREAD:
        run.services.events.publish(Warning(f"{asked.instance}: its conversation is full; it continues in a new one"))
        return replace(asked, texts=asked.texts.for_a_new_thread(), thread=NEW_THREAD, opened=False)
    return None


def by_budget(budget: Budget, outcome: TurnOutcome) -> TurnOutcome:
    """The outcome, which says so if the turn was interrupted because a limit was exceeded or the time is used up."""
    if outcome.status not in ENDED_BY_BUDGET or (used_up := budget.interruption()) is None:
        return outcome
    return replace(outcome, status=INTERRUPTED, reason=used_up.reason, message=str(used_up))


def pause(stopping: Event, tries: int, wanted_seconds: float | None = None) -> None:
    """Wait after so many ``tries``: as long as the provider wants, otherwise longer each time and with jitter.

    Never longer than `LONGEST_PAUSE_SECONDS`. Raises `RunInterrupted` if ``stopping`` is set meanwhile.
    """
    seconds = wanted_seconds or FIRST_PAUSE_SECONDS * 2.0 ** (tries - 1) * random.uniform(0.5, 1.0)
    if stopping.wait(min(seconds, LONGEST_PAUSE_SECONDS)):
        raise RunInterrupted


def failure(run: RunResources, asked: TurnPrompt, outcome: TurnOutcome) -> RoleFailed:
    """The error that the role has failed permanently."""
    advice = ADVICE.get(outcome.reason) or hint(outcome.reason)
    advice = f"{TOO_MANY_FILES}." if lacks_descriptors(outcome.message) else advice
    folder = run.services.folder
    return RoleFailed(
        f"role {asked.role.name}: {outcome.message} ({outcome.reason})",
        outcome.reason,
        f"{advice} See {folder.role_path(asked.instance)}; `codex-multi-role resume RUN` tries again.",
    )


def _quota(run: RunResources, asked: TurnPrompt, outcome: TurnOutcome) -> QuotaUsedUp:
    at = datetime.fromtimestamp(outcome.resets_at, UTC).isoformat() if outcome.resets_at else ""
    hint = f"It accepts turns again at {at}." if at else "`codex-multi-role resume RUN` tries again."
    return QuotaUsedUp(f"role {asked.role.name}: {outcome.message}", hint, at)
