"""Find the recorded visit that ``STEP[:VISIT]`` names."""

from __future__ import annotations

from collections.abc import Sequence

from codex_multi_role.errors import UsageError
from codex_multi_role.reading.nearest import did_you_mean
from codex_multi_role.run_folder import Beginning, RunEvent, beginnings
from codex_multi_role.run_folder.events import StepStarted

MOST_NAMED = 30


def find_start(events: Sequence[RunEvent], start: str | None, run_id: str) -> Beginning:
    """The visit that ``start`` names, by default the step's last one; ``events`` are all events of the run.

    Raises `UsageError` with a list of the existing visits.
    """
    known = beginnings(events)
    if not known:
        raise UsageError(f"the run {run_id} has begun no step that it could be forked from", "Start another run.")
    if not start:
        raise UsageError("it is not said from where to fork", f"--from STEP[:VISIT]: {_in_words(known)}.")
    step, _, visit = start.partition(":")
    visits = [each for each in known if each.step == step]
    if not visits:
        raise _no_such_step(step, known, events, run_id)
    found = [each for each in visits if not visit or str(each.visit) == visit]
    if not found:
        raise UsageError(f"the run {run_id} has not begun {start}", f"It has begun {_in_words(visits)}.")
    return found[-1]


def _no_such_step(step: str, known: Sequence[Beginning], events: Sequence[RunEvent], run_id: str) -> UsageError:
    calls = _calls_of(step, known, events)
    if calls:
        return UsageError(
            f'the step "{step}" is in a flow that was called; a fork begins with a step of the run\'s own flow',
            f"Fork from before the call: --from {_in_words(calls)}.",
        )
    nearest = did_you_mean(step, {each.step for each in known})
    return UsageError(f'the run {run_id} has begun no step "{step}"{nearest}', f"It has begun {_in_words(known)}.")


def _calls_of(step: str, known: Sequence[Beginning], events: Sequence[RunEvent]) -> list[Beginning]:
    """The visits in which a called flow entered the step, which events name ``<key of the call>/<step>``."""
    began = {each.position: each for each in known}
    found: dict[str, Beginning] = {}
    here = known[0]
    for position, event in enumerate(events):
        here = began.get(position, here)
        if isinstance(event, StepStarted) and event.step.endswith(f"/{step}"):
            found[here.key] = here
    return list(found.values())


def _in_words(known: Sequence[Beginning]) -> str:
    earlier = f"{len(known) - MOST_NAMED} more and " if len(known) > MOST_NAMED else ""
    return earlier + ", ".join(f"{each.step}:{each.visit}" for each in known[-MOST_NAMED:])
