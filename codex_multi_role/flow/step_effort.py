"""What one visit of a step can come to at most."""

from __future__ import annotations

from codex_multi_role.catalog import EVERY_ROLE, RoleSpec, RoleSpecCatalog, StepSpec
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.conditions import UNKNOWN, Meanings, known_value
from codex_multi_role.flow.effort import MOST_AT_ONCE, Effort
from codex_multi_role.options import MOST_REPAIRS

STEPS_PER_ASK = MOST_REPAIRS + 6
"""Journal steps of an ask: its turn, its repair turns, and what becomes of the answer."""
STEPS_PER_CHECK = 1
STEPS_PER_REVIEW = 2
STEPS_PER_PAUSE = 1
STEPS_PER_MERGE = 1
"""Merging back the copy that one item, or the step, worked in."""
SPARE_STEPS_PER_VISIT = 2


def unit_effort(step: StepSpec, catalog: RoleSpecCatalog, prompts: int, called: Effort | None) -> Effort:
    """The step, or one item of its fan-out, with all its tries and the pauses between them.

    ``prompts``: the most that one ask sends, repairs included. ``called``: the walk that a call starts, None where it
    starts none.
    """
    once = _once(step, catalog, prompts, called)
    if step.retry is None:
        return once
    pauses = step.retry.attempts - 1
    waited = Effort(seconds=step.retry.backoff_seconds * (2**pauses - 1), records=STEPS_PER_PAUSE * pauses)
    return once.repeated(step.retry.attempts).then(waited)


def visit_effort(step: StepSpec, unit: Effort, meanings: Meanings, place: str) -> Effort:
    """One visit of the step, all items of its fan-out included.

    Raises ``DefinitionError`` that begins with ``place`` when it is known that ``concurrency`` will be no such number.
    """
    items, whole = 1, unit
    if step.for_each is not None:
        items = len(step.for_each) if isinstance(step.for_each, list) else step.max_items or 0
        whole = unit.fanned_out(items, _at_once(step, meanings, place))
    merges = items * STEPS_PER_MERGE if step.isolate is not None else 0
    return whole.then(Effort(records=merges + SPARE_STEPS_PER_VISIT))


def _once(step: StepSpec, catalog: RoleSpecCatalog, prompts: int, called: Effort | None) -> Effort:
    if step.ask is not None:
        roles = catalog.roles if step.ask == EVERY_ROLE else (catalog.role(step.ask),)
        seconds = float(sum(_turn_seconds(step, role) for role in roles) * prompts)
        return Effort(len(roles), seconds, STEPS_PER_ASK * len(roles), frozenset(role.name for role in roles))
    if step.check is not None:
        return Effort(records=STEPS_PER_CHECK)
    if step.review is not None:
        return Effort(seconds=step.time_limit_seconds or 0.0, records=STEPS_PER_REVIEW)
    return called or Effort()


def _turn_seconds(step: StepSpec, role: RoleSpec) -> float:
    return (step.limits and step.limits.turn_seconds) or role.limits.turn_seconds


def _at_once(step: StepSpec, meanings: Meanings, place: str) -> int | None:
    known = known_value(step.concurrency, meanings)
    if known is UNKNOWN:
        return None
    if isinstance(known, bool) or not isinstance(known, int) or not 1 <= known <= MOST_AT_ONCE:
        raise DefinitionError(f"{place}.concurrency: must be a number from 1 to {MOST_AT_ONCE}, not {known!r}")
    return known
