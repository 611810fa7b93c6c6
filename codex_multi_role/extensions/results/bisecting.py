"""Find the state from which a command has another result: a binary search that notices results that vary.

Pure: ``execute`` does what there is to do for the state of a number, and may be a script.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["pass", "fail", "unknown"]
"""``unknown``: the state cannot be judged."""
Execute = Callable[[int], Outcome | None]
"""Returns None, without having executed anything, for a state that cannot be restored."""
LEAD = 6
"""How often one outcome must have come more often than any other, once outcomes vary: wrong by 10 %, it is then the
wrong one twice in a million times."""
REPEAT = 5
"""How often the states beside the change are executed. With a tenth of the results wrong, three times leads to a wrong
turn in 0.3 % of the searches, five times in 0.01 % (measured)."""
MAX_EXECUTIONS = 25
"""Maximum number of executions for one state; without that lead, it cannot be judged."""


@dataclass(frozen=True)
class Bisection:
    """``after``: the first state whose outcome is that of the last one, ``last``; ``before``: the last one without.

    States between these two cannot be judged. ``before`` is -1 if no state has another outcome. ``executions`` are
    those of the search, ``confirmations`` those that confirm it or, if outcomes vary (``is_flaky``), repeat it.
    """

    last: Outcome
    before: int
    after: int
    executions: int
    confirmations: int
    is_flaky: bool

    @property
    def changed(self) -> bool:
        return self.last != "unknown" and self.before >= 0


def bisect_states(count: int, execute: Execute, repeat: int) -> Bisection:
    """Search ``count`` states, in order, for the change that led to the outcome of the last one.

    If all states can be judged, that takes at most ⌈log₂ n⌉ + 1 executions for n changes between them. The states at
    the border are then executed until each was ``repeat`` times; if it is the first state, this shows whether anything
    changed at all. If any outcome differs from an earlier one of its state, every state of another search is executed
    until one of its outcomes leads.
    """
    search = _StateSearch(count, execute)
    last, before, after = search.run(lead=1)
    executions = search.executions
    before, after = search.check_first(last, before, after, lead=1)
    is_flaky = last != "unknown" and not search.are_confirmed({after, before if before >= 0 else count - 1}, repeat)
    if is_flaky:
        last, before, after = search.run(lead=LEAD)
        before, after = search.check_first(last, before, after, lead=LEAD)
    return Bisection(last, before, after, executions, search.executions - executions, is_flaky)


class _StateSearch:
    """Remembers all outcomes of each state, so that a second search continues where the first ended."""

    def __init__(self, count: int, execute: Execute) -> None:
        self._count = count
        self._execute = execute
        self._outcomes: defaultdict[int, Counter[Outcome]] = defaultdict(Counter)
        self.executions = 0

    def run(self, lead: int) -> tuple[Outcome, int, int]:
        """The outcome of the last state, and the states before and after the change, as if there were one."""
        before, after = 0, self._count - 1
        last = self._judge(after, lead)
        candidates = list(range(1, after)) if last != "unknown" else []
        while candidates:  # each round removes one at least
            middle = candidates[len(candidates) // 2]
            outcome = self._judge(middle, lead)
            if outcome == "unknown":
                candidates.remove(middle)
            elif outcome == last:
                after, candidates = middle, [each for each in candidates if each < middle]
            else:
                before, candidates = middle, [each for each in candidates if each > middle]
        return last, before, after

    def check_first(self, last: Outcome, before: int, after: int, lead: int) -> tuple[int, int]:
        """The border; if it begins with the first state, only if that has another outcome than ``last``."""
        if before or last == "unknown":
            return before, after
        first = self._judge(0, lead)
        if first == last:
            return -1, 0
        return (-1, after) if first == "unknown" else (0, after)

    def are_confirmed(self, states: Collection[int], repeat: int) -> bool:
        """Whether each of ``states`` has the same outcome ``repeat`` times."""
        for state in sorted(states):
            while self._outcomes[state].total() < repeat and len(self._outcomes[state]) == 1:
                self._execute_once(state)
        return all(len(self._outcomes[state]) == 1 for state in states)

    def _judge(self, state: int, lead: int) -> Outcome:
        """Execute ``state`` until one outcome came ``lead`` times more often than any other."""
        outcomes = self._outcomes[state]
        while outcomes.total() < MAX_EXECUTIONS:
            if outcomes.keys() == {"unknown"}:
                return "unknown"
            (first, most), (_, second) = [*outcomes.most_common(2), ("unknown", 0), ("unknown", 0)][:2]
            if most - second >= lead:
                return first
            self._execute_once(state)
        return "unknown"

    def _execute_once(self, state: int) -> None:
        outcome = self._execute(state)
        self.executions += outcome is not None
        self._outcomes[state][outcome or "unknown"] += 1
