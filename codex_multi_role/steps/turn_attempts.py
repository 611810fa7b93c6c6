"""Take a turn: retry until Codex answers, within limits."""

from __future__ import annotations

from codex_multi_role.codex.turn import TurnOutcome
from codex_multi_role.errors import CodexStartFailed
from codex_multi_role.run_folder.events import RoleRestarted
from codex_multi_role.run_options import PROVIDER_ATTEMPTS
from codex_multi_role.steps.attempt import Attempt
from codex_multi_role.steps.remedies import failure, next_try, pause
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.turn_prompt import TurnPrompt
from codex_multi_role.steps.turn_result import TurnResult


def take_turn(run: RunResources, asked: TurnPrompt) -> TurnResult:
    """Send the prompt until Codex answers it, at most `PROVIDER_ATTEMPTS` times, with growing pauses.

    Raises `RoleFailed` if no attempt was answered, `CodexError` if no process started, `QuotaUsedUp`, and
    `RunInterrupted` if the run is stopping.
    """
    for attempt in range(1, PROVIDER_ATTEMPTS + 1):
        last = attempt == PROVIDER_ATTEMPTS
        try:
            turn, outcome = _attempt(run, asked, attempt)
        except CodexStartFailed as error:
            if last or not error.transient:
                raise
            run.services.events.publish(RoleRestarted(asked.instance, str(error)))
            pause(run.progress.stopping, attempt)
            continue
        if turn is not None:
            return turn
        again = next_try(run, asked, outcome)
        if again is None or last:
            raise failure(run, asked, outcome)
        asked = again
        pause(run.progress.stopping, attempt, outcome.pause_seconds)
    raise AssertionError("a prompt is sent at least once")


def _attempt(run: RunResources, asked: TurnPrompt, attempt: int) -> tuple[TurnResult | None, TurnOutcome]:
    """Send the prompt once, as soon as its process may run."""
    with run.services.fleet.borrowed(asked.instance) as client, run.services.clock.turn():
        run.progress.running_instances.add(asked.instance)
        try:
            return Attempt(run, asked, attempt, client).take()
        finally:
            run.progress.running_instances.discard(asked.instance)
