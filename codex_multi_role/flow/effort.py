"""Upper bounds of work: of one visit of a step, and added up in sequence, repeated, or in parallel."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from codex_multi_role.catalog import EVERY_ROLE, RoleSpec, RoleSpecCatalog, StepSpec
from codex_multi_role.catalog.step_spec import ForEach
from codex_multi_role.errors import UsageError
from codex_multi_role.flow.conditions import UNKNOWN, Meanings, known_value
from codex_multi_role.reading.places import Place
from codex_multi_role.run_options import LONGEST_PAUSE_SECONDS, MOST_REPAIRS, PROVIDER_ATTEMPTS

CheckSeconds = Callable[[str, Mapping[str, object]], float]
"""``check_seconds(name, with)``: the maximum duration of a check with these options; unknown ones are missing.

Raises ``UsageError`` for an unknown check.
"""


@dataclass(frozen=True)
class Terms:
    """``cycles`` and ``repair_attempts`` as in the run's options.

    ``test_seconds``: the maximum duration of the tests after an ask that changed files, 0 without tests.
    ``baseline_seconds``: that of the tests before the first turn, for each kind of folder that the roles work in.
    """

    cycles: int
    repair_attempts: int
    check_seconds: CheckSeconds
    test_seconds: float
    baseline_seconds: float = 0.0


MOST_AT_ONCE = 64
"""Maximum number of items of a fan-out that run at once."""


FIGURES = ("turns", "continued", "seconds", "one_by_one", "records")
"""The fields of an effort that add up."""


@dataclass(frozen=True)
class Effort:
    """``turns`` without repairs and without those ``continued``, ``seconds`` of declared deadlines.

    ``records``: steps of the journal. ``one_by_one``: the seconds if nothing ran in parallel. ``own``: the roles asked
    on the walk's own processes, one each. ``fan_out``: by role, how many additional processes its fan-outs use at once.
    """

    turns: int = 0
    continued: int = 0
    seconds: float = 0.0
    one_by_one: float = 0.0
    records: int = 0
    own: frozenset[str] = frozenset()
    fan_out: Counter[str] = field(default_factory=Counter)

    @property
    def processes(self) -> Counter[str]:
        """All processes used at once, by role. A walk keeps its own ones while it fans out."""
        return Counter(self.own) + self.fan_out

    def then(self, other: Effort) -> Effort:
        """This work, then the other on the same processes."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in FIGURES}
        return Effort(**sums, own=self.own | other.own, fan_out=self.fan_out | other.fan_out)

    def repeated(self, times: int) -> Effort:
        """This work ``times`` times in sequence."""
        return replace(self, **{name: getattr(self, name) * times for name in FIGURES})

    def fanned_out(self, items: int, at_once: int | None) -> Effort:
        """This work for each of ``items``, ``at_once`` in parallel; if that is None, each figure has its own worst."""
        width = max(1, min(items, MOST_AT_ONCE if at_once is None else at_once))
        seconds = self.seconds * (items if at_once is None else math.ceil(items / width))
        fan_out = Counter({role: width * number for role, number in self.processes.items()})
        return replace(self.repeated(items), seconds=seconds, own=frozenset(), fan_out=fan_out)


STEPS_PER_CHECK = 1
STEPS_PER_REVIEW = 2
STEPS_PER_PAUSE = 1
STEPS_PER_LIMIT = 2
"""How many a unit can record, and that it took too long."""
STEPS_PER_MERGE = 1
"""To merge the copy in which one item, or the step, worked."""
STEPS_PER_COPY = 1
"""To make the copy for a called flow."""
SPARE_STEPS_PER_VISIT = 2
PAUSES_SECONDS = LONGEST_PAUSE_SECONDS * (PROVIDER_ATTEMPTS - 1)
"""All pauses before a prompt is sent again."""


def steps_per_ask(role: RoleSpec) -> int:
    """Journal steps of an ask: its turn, those that continue it, its repair turns, and the use of the answer."""
    return MOST_REPAIRS + 6 + role.max_steps


class StepEfforts:
    """The efforts of a flow's steps. ``meanings``: what is known of the flow before it runs.

    Raises ``DefinitionError`` that starts with the step's place.
    """

    def __init__(self, catalog: RoleSpecCatalog, terms: Terms, meanings: Meanings) -> None:
        self._catalog = catalog
        self._terms = terms
        self._meanings = meanings

    def of_unit(self, step: StepSpec, called: Effort | None, place: Place) -> Effort:
        """The step, or one item of its fan-out, with all its attempts and the pauses between them.

        ``called``: the walk that a call starts, None if it starts none.
        """
        return _within(step, self._tries(step, called, place))

    def _tries(self, step: StepSpec, called: Effort | None, place: Place) -> Effort:
        once = self._once(step, called, place)
        if step.retry is None:
            return once
        pauses = step.retry.attempts - 1
        waited = _alone(step.retry.backoff_seconds * (2**pauses - 1), STEPS_PER_PAUSE * pauses)
        return once.repeated(step.retry.attempts).then(waited)

    def of_visit(self, step: StepSpec, unit: Effort, place: Place) -> Effort:
        """One visit of the step, including all items of its fan-out."""
        items, whole = 1, unit
        if step.for_each is not None:
            items = step.for_each.most_items
            whole = unit.fanned_out(items, self._at_once(step.for_each, place / "for_each"))
            if step.for_each.needs is not None:  # each may wait for the one before
                whole = replace(whole, seconds=unit.seconds * items)
            if step.asks_at_once:
                whole = replace(whole, fan_out=Counter(step.roles))
        merges = items * STEPS_PER_MERGE if step.isolate is not None else 0
        decisions = 1 if step.for_each is not None and step.for_each.until is not None else 0
        return whole.then(Effort(records=merges + decisions + SPARE_STEPS_PER_VISIT))

    def _once(self, step: StepSpec, called: Effort | None, place: Place) -> Effort:
        if step.roles:
            return _either([self._once(step.asking(role), called, place) for role in step.roles])
        if step.ask is not None:
            roles = self._catalog.roles if step.ask == EVERY_ROLE else (self._catalog.role(step.ask),)
            seconds = float(sum(self._ask_seconds(step.limits.turn_seconds, role) for role in roles))
            continued = sum(role.max_steps for role in roles)
            turns = Effort(len(roles), continued, own=frozenset(role.name for role in roles))
            return turns.then(_alone(seconds, sum(map(steps_per_ask, roles))))
        if step.check is not None:
            return _alone(self._check_seconds(step, place), STEPS_PER_CHECK)
        if step.review is not None:
            return _alone(step.review.after.seconds if step.review.after is not None else 0.0, STEPS_PER_REVIEW)
        own = STEPS_PER_COPY if step.isolate else 0
        return (called or Effort()).then(Effort(records=own))

    def _ask_seconds(self, limit: float | None, role: RoleSpec) -> float:
        """Each prompt, also of a repair turn, is sent the maximum number of times; then the tests run."""
        turn = limit or role.limits.turn_seconds
        tests = self._terms.test_seconds if role.may_change_workspace else 0.0
        return (1 + role.max_steps + self._terms.repair_attempts) * (PROVIDER_ATTEMPTS * turn + PAUSES_SECONDS) + tests

    def _check_seconds(self, step: StepSpec, place: Place) -> float:
        given = {name: known_value(value, self._meanings) for name, value in step.with_.items()}
        known = {name: value for name, value in given.items() if value is not UNKNOWN}
        try:
            return self._terms.check_seconds(step.check or "", known)
        except UsageError as error:
            raise (place / "check").error(str(error), error.hint) from error

    def _at_once(self, fan_out: ForEach, place: Place) -> int | None:
        """``concurrency``; None if unknown. Raises `DefinitionError` for a known value that is invalid."""
        known = known_value(fan_out.concurrency, self._meanings)
        if known is UNKNOWN:
            return None
        if isinstance(known, bool) or not isinstance(known, int) or not 1 <= known <= MOST_AT_ONCE:
            raise (place / "concurrency").error(f"must be a number from 1 to {MOST_AT_ONCE}, not {known!r}")
        return known


def _within(step: StepSpec, effort: Effort) -> Effort:
    """The effort of a unit, which its limit ends."""
    seconds = step.limits.seconds
    if seconds is None:
        return effort
    return replace(effort, seconds=min(effort.seconds, seconds), records=effort.records + STEPS_PER_LIMIT)


def _either(efforts: Sequence[Effort]) -> Effort:
    """The most that any of them is, by figure."""
    most = {name: max(getattr(each, name) for each in efforts) for name in FIGURES}
    return Effort(**most, own=frozenset().union(*(each.own for each in efforts)))


def _alone(seconds: float, records: int) -> Effort:
    """An effort of this duration, with nothing in parallel."""
    return Effort(seconds=seconds, one_by_one=seconds, records=records)
