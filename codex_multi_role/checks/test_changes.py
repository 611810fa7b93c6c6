"""What changed from one run of the same tests to another, by their ids. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

FAILED, PASSED, SKIPPED = "failed", "passed", "skipped"
Outcomes = Mapping[str, str]
"""``passed``, ``failed`` or ``skipped`` by the runner's id of the test, or of a module without its tests."""
GONE = "gone"
"""The verdict if tests that passed before the first turn are gone, and nobody has confirmed that."""
MAX_GLOBS = 3
WORST_FIRST = (FAILED, SKIPPED, PASSED)


def function_of(test: str) -> str:
    """The id without parameters."""
    return test.partition("[")[0]


def above(test: str) -> Iterator[str]:
    """The ids of the classes and the module that a test is in, the innermost first."""
    place = function_of(test)
    while "::" in place:
        place = place.rpartition("::")[0]
        yield place


def matches(test: str, globs: Collection[str]) -> bool:
    """Whether a glob has the test, its function, or a class or the module around it. Brackets stand for themselves."""
    places = (test, function_of(test), *above(test))
    return any(fnmatchcase(place, glob.replace("[", "[[]")) for place in places for glob in globs)


def short_globs(tests: Collection[str]) -> list[str]:
    """A few globs that match them all."""
    functions = sorted({function_of(test) for test in tests})
    modules = sorted({test.partition("::")[0] for test in functions})
    return next((each for each in (functions, modules) if len(each) <= MAX_GLOBS), ["*"])


def grouped(outcomes: Outcomes, unstable: Collection[str]) -> Outcomes:
    """``outcomes``, with the cases of ``unstable`` functions numbered, the worst first, instead of by their ids."""
    cases: dict[str, list[str]] = defaultdict(list)
    for test, outcome in outcomes.items():
        if (function := function_of(test)) in unstable:
            cases[function].append(outcome)
    found = {test: outcome for test, outcome in outcomes.items() if function_of(test) not in unstable}
    for function, ended in cases.items():
        found |= {f"{function}[case {n}]": each for n, each in enumerate(sorted(ended, key=WORST_FIRST.index), 1)}
    return found


def differing(one: Outcomes, others: Collection[Outcomes]) -> set[str]:
    """The tests that passed in ``one`` run and failed in another, or the other way round."""
    return {test for test in one for other in others if {one[test], other.get(test)} == {PASSED, FAILED}}


def unstable_functions(first: Outcomes, second: Outcomes) -> set[str]:
    """Those whose ids differ between two runs of the same files."""
    both = {function_of(test) for test in first} & {function_of(test) for test in second}
    return {function_of(test) for test in first.keys() ^ second.keys() if "[" in test} & both


@dataclass(frozen=True)
class TestChanges:
    """The ids. ``new_failures``: what fails now and did not before, then what passed before and is skipped now.

    ``fixed``: what failed before and passes now; ``dropped``: what failed before and no longer runs; ``removed``: what
    passed before and is gone. The tests of a module that cannot be collected count as that module.
    """

    __test__ = False

    new_failures: tuple[str, ...] = ()
    still_failing: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @classmethod
    def between(cls, before: Outcomes, after: Outcomes, *, same_selection: bool) -> TestChanges:
        """``same_selection``: whether both ran the same tests, so that a missing one counts."""
        failing, failed = _ended(after, FAILED), _ended(before, FAILED)
        collected = {place for test in after for place in above(test)} - after.keys()
        fixed = {test for test in failed if after.get(test) == PASSED or test in collected}
        if not same_selection:
            return cls(_sorted(failing - failed), _sorted(failing & failed), _sorted(fixed))
        passed, skipped = _ended(before, PASSED), _ended(after, SKIPPED)
        hidden = {test: next((each for each in above(test) if each in failing | skipped), "") for test in before}
        lost = {test for test in before if test not in after and not hidden[test]} - fixed
        muted = {hidden[test] or test for test in passed if test in skipped or (hidden[test] and test not in after)}
        return cls(
            new_failures=(*_sorted(failing - failed), *_sorted(muted - failing)),
            still_failing=_sorted(failing & failed),
            fixed=_sorted(fixed),
            dropped=_sorted(failed & (lost | skipped)),
            removed=_sorted(passed & lost),
        )

    def without(self, uncounted: Collection[str]) -> TestChanges:
        """The changes if those failures and removals do not count."""
        new, removed = (
            tuple(test for test in tests if test not in uncounted) for tests in (self.new_failures, self.removed)
        )
        return replace(self, new_failures=new, removed=removed)


def _ended(outcomes: Outcomes, how: str) -> set[str]:
    return {test for test, outcome in outcomes.items() if outcome == how}


def _sorted(tests: set[str]) -> tuple[str, ...]:
    return tuple(sorted(tests))
