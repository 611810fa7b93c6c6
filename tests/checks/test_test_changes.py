"""What changed between two runs of the same tests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.checks.test_changes import TestChanges

NAMES = st.sampled_from("abcdef")
OUTCOMES = st.dictionaries(NAMES, st.sampled_from(["passed", "failed", "skipped"]))


def between(before: dict[str, str], after: dict[str, str], *, same: bool = True) -> TestChanges:
    return TestChanges.between(before, after, same_selection=same)


def test_every_kind_of_change() -> None:
    before = {"red": "failed", "fixed": "failed", "gone": "failed"}
    before |= {"green": "passed", "lost": "passed", "muted": "passed", "off": "skipped"}
    after = {"red": "failed", "fixed": "passed", "green": "failed", "muted": "skipped", "off": "failed"}
    changes = between(before, {**after, "new": "failed", "fine": "passed"})
    assert changes == TestChanges(("green", "new", "off", "muted"), ("red",), ("fixed",), ("gone",), ("lost",))


def test_what_was_not_selected_is_not_missing() -> None:
    changes = between({"a": "passed", "b": "failed"}, {}, same=False)
    assert changes == TestChanges()


def test_flaky_failure_does_not_count() -> None:
    changes = between({}, {"a": "failed", "b": "failed"})
    assert changes.without(["a"]).new_failures == ("b",)


@given(OUTCOMES)
def test_nothing_is_new_if_nothing_changed(outcomes: dict[str, str]) -> None:
    changes = between(outcomes, outcomes)
    assert (changes.new_failures, changes.fixed) == ((), ())


@given(OUTCOMES, OUTCOMES)
def test_every_failure_is_new_or_old_and_none_is_both(before: dict[str, str], after: dict[str, str]) -> None:
    changes = between(before, after)
    failing = {test for test, outcome in after.items() if outcome == "failed"}
    assert failing <= {*changes.new_failures, *changes.still_failing}
    assert not {*changes.new_failures} & {*changes.still_failing}
    red_before = {test for test, outcome in before.items() if outcome == "failed"}
    assert red_before == {*changes.still_failing, *changes.fixed, *changes.dropped}
