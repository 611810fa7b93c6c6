"""What to do about a failed turn: how long to pause before the next attempt, and how to park on a usage limit."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from threading import Event

from codex_multi_role.codex.failures import Remedy, lacks_descriptors
from codex_multi_role.codex.turn_outcome import TurnOutcome
from codex_multi_role.errors import TOO_MANY_FILES, QuotaUsedUp, RoleFailed, RunInterrupted
from codex_multi_role.run_folder.events import Warning
from codex_multi_role.run_options import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.turn_record import NEW_THREAD, TurnPrompt

ADVICE: Mapping[str, str] = {
    "against_policy": "Change the goal or the role's prompt: the provider does not answer this one.",
    "bad_request": "Check the model (--model, the role's `model`) and the provider's settings.",
    "context_full": "The prompt alone is more than the model takes: hand on less, or name a model that takes more.",
    "not_as_recorded": "Record the run again if the change is meant, or replay it with --replay-match nearest.",
    "not_found": "The provider has no such model or no such address: check the model (--model, the role's `model`) and "
    "the provider's base_url.",
    "overloaded": "Try later, or name another model.",
    "rate_limited": "Try later, or with fewer processes at once (--max-processes).",
    "stalled": (
        "If the model may think that long in silence, raise the role's limits.idle_seconds; else look what keeps Codex "
        "from running: a lack of memory, a paused container, a signal."
    ),
    "timed_out": "If its turns may take that long, raise the role's limits.turn_seconds.",
    "unauthorized": "Log in with `codex-multi-role codex login`, or mend the key that the provider's env_key names.",
    "unreachable": "Check the network and the provider's base_url.",
}
"""What helps a role that failed for this reason, besides another attempt."""


def next_try(run: RunResources, asked: TurnPrompt, outcome: TurnOutcome) -> TurnPrompt | None:
    """The prompt to send after ``outcome``, if another attempt is the remedy; otherwise None.

    Raises `QuotaUsedUp` if the run must park, `RunInterrupted` if it was stopped.
    """
    if outcome.reason == RunInterrupted.reason:
        raise RunInterrupted
    if outcome.remedy is Remedy.PARK:
        raise _quota(run, asked, outcome)
    if outcome.remedy is Remedy.RETRY:
        return replace(asked, opened=True)
    if outcome.remedy is Remedy.FRESH_THREAD and asked.thread != NEW_THREAD:
        run.services.events.publish(Warning(f"{asked.instance}: its conversation is full; it continues in a new one"))
        return replace(asked, prompt=asked.when_forgotten, thread=NEW_THREAD, opened=False)
    return None


def pause(stopping: Event, tries: int, wanted_seconds: float | None = None) -> None:
    """Wait after so many ``tries``: as long as the provider wants, otherwise longer each time and with jitter.

    Never longer than `LONGEST_PAUSE_SECONDS`. Raises `RunInterrupted` if ``stopping`` is set meanwhile.
    """
    seconds = wanted_seconds or FIRST_PAUSE_SECONDS * 2.0 ** (tries - 1) * random.uniform(0.5, 1.0)
    if stopping.wait(min(seconds, LONGEST_PAUSE_SECONDS)):
        raise RunInterrupted


def failure(run: RunResources, asked: TurnPrompt, outcome: TurnOutcome) -> RoleFailed:
    """The error that the role has failed permanently."""
    advice = f"{TOO_MANY_FILES}." if lacks_descriptors(outcome.message) else ADVICE.get(outcome.reason, "")
    folder = run.services.folder
    again = f"`codex-multi-role resume {folder.run_id}` tries again."
    return RoleFailed(
        f"role {asked.role.name}: {outcome.message} ({outcome.reason})",
        outcome.reason,
        f"{advice} See {folder.path / asked.instance}; {again}",
    )


def _quota(run: RunResources, asked: TurnPrompt, outcome: TurnOutcome) -> QuotaUsedUp:
    at = datetime.fromtimestamp(outcome.resets_at, UTC).isoformat() if outcome.resets_at else ""
    again = f"resume {run.services.folder.run_id}"
    hint = f"`codex-multi-role {again} --wait` goes on at {at}." if at else f"`codex-multi-role {again}` tries again."
    return QuotaUsedUp(f"role {asked.role.name}: {outcome.message}", hint, at)
