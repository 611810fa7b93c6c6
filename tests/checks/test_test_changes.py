"""What changed between two runs of the same tests, and which tests moved elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.checks.moved_tests import TestSources, functions_in
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


ONE = "def test_one():\n    assert f(1) == 2\n    assert f(3) == 4\n"
CASES = '@parametrize("x, y", [(1, 2), (3, 4)])\ndef test_one(x, y):\n    {}\n'
KEPT, LOST = CASES.format("assert f(x) == y"), CASES.format("f(x)")
ID, PARTS = "test_a.py::test_one", ["test_a.py::test_one[1-2]", "test_a.py::test_one[3-4]"]
VERSION = '@parametrize("v", VERSIONS)\ndef test_v(v):\n    assert v\n'


def moved(
    before: dict[str, str], now: dict[str, str], removed: list[str], passing: list[str], known: tuple[str, ...] = ()
) -> set[str]:
    sources = TestSources(before, before.get, now.get)
    old = dict.fromkeys([*removed, *known], "passed")
    return sources.moved(removed, old, dict.fromkeys([*passing, *known], "passed"))


@pytest.mark.parametrize(
    ("now", "passing", "is_moved"),
    [
        ({"test_b.py": ONE}, ["test_b.py::test_one"], True),
        ({"test_b.py": ONE}, [], False),  # it does not pass there
        ({"test_a.py": ONE.replace("test_one", "test_uno")}, ["test_a.py::test_uno"], True),
        ({"test_b.py": ONE.replace("2", "3")}, ["test_b.py::test_one"], False),
        ({"test_b.py": "class TestX:\n    " + ONE.replace("\n", "\n    ")}, ["test_b.py::TestX::test_one"], True),
        ({"test_a.py": KEPT}, PARTS, True),
        ({"test_a.py": KEPT}, PARTS[:1], False),  # fewer cases than there were assertions
        ({"test_a.py": LOST}, PARTS, False),
        ({"test_b.py": "def test_one(:"}, ["test_b.py::test_one"], False),
    ],
)
def test_function_that_stands_elsewhere_and_passes(now: dict[str, str], passing: list[str], is_moved: bool) -> None:
    assert moved({"test_a.py": ONE}, now, [ID], passing) == ({ID} if is_moved else set())


def test_no_function_stands_for_two() -> None:
    same = "def test_two():\n    assert f(1) == 2\n    assert f(3) == 4\n"
    before = {"test_a.py": f"{ONE}\n\n{same}"}
    removed = [ID, "test_a.py::test_two"]
    assert len(moved(before, {"test_b.py": ONE}, removed, ["test_b.py::test_one"])) == 1


def test_existing_function_stands_for_no_other() -> None:
    before = {"test_a.py": ONE, "test_b.py": ONE}
    assert not moved(before, {"test_b.py": ONE}, [ID], [], known=("test_b.py::test_one",))


def test_equal_function_whose_values_have_changed_is_the_same() -> None:
    removed, now = ["test_a.py::test_v[1.0]"], {"test_a.py": VERSION}
    assert moved({"test_a.py": VERSION}, now, removed, ["test_a.py::test_v[1.1]"]) == {*removed}
    other = {"test_a.py": VERSION.replace("VERSIONS", "[1.1]")}
    assert not moved({"test_a.py": VERSION}, other, removed, ["test_a.py::test_v[1.1]"])


def test_what_is_gone_without_any_outcome() -> None:
    before = {"test_a.py": ONE, "test_b.py": VERSION, "test_c.py": "x = 1\n", "code_of.py": "def test_x(): pass\n"}
    sources = TestSources(before, before.get, {"test_a.py": KEPT, "test_b.py": ""}.get)
    assert sources.gone() == ["test_b.py::test_v", "test_c.py"]
    assert sources.gone_files() == ["test_c.py"]


def test_names_of_functions() -> None:
    text = "class A:\n    class B:\n        async def test_x(self): pass\ndef helper(): pass\ndef test_y(): pass\n"
    assert [*functions_in(text)] == ["A::B::test_x", "test_y"]


def test_renamed_function_is_also_renamed_where_it_is_inherited() -> None:
    base = "class TestBase:\n    " + ONE.replace("\n", "\n    ").rstrip()
    text = f"{base}\n\nclass TestOther(Mixin, TestBase):\n    pass\n"
    removed = ["test_a.py::TestBase::test_one", "test_a.py::TestOther::test_one"]
    passing = [test.replace("test_one", "test_uno") for test in removed]
    assert moved({"test_a.py": text}, {"test_a.py": text.replace("test_one", "test_uno")}, removed, passing) == {
        *removed
    }
    assert moved({"test_a.py": text}, {"test_a.py": base}, removed[1:], [], known=(removed[0],)) == set()
