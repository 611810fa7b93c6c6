"""The tool's own oracle: each item of a plan is refused, or run as a test, and bugs are found whoever tests what.

Costs: an item that waits has ten seconds.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_multi_role.extensions.test_generation.expectations import contrary
from codex_multi_role.extensions.test_generation.oracle import judge_items
from codex_multi_role.extensions.test_generation.plan_items import target_module, usable_items
from tests.extensions.test_generation.programs.planted import item, planted
from tests.support.checks import MakeContext
from tests.support.teams import Record


def usable(source: str, *items: Record, texts: dict[str, str] | None = None, most: int = 100) -> tuple[Any, Any]:
    return usable_items([], items, target_module(source, "program"), texts or {}, most)


def judged(make_context: MakeContext, source: str, *items: Record, **files: str) -> list[Record]:
    """The items with their verdicts."""
    plan, refused = usable(source, *items)
    assert not refused
    given = {"program.py": source, **{f"{name}.py": text for name, text in files.items()}}
    context = make_context(given, target="program.py", tests="tests/test_program.py", items=plan)
    result: dict[str, Any] = judge_items(context)
    return [{**each, **result["verdicts"][each["id"]]} for each in plan]


@pytest.mark.real
@pytest.mark.parametrize(("has_bug", "verdict"), [(False, "holds"), (True, "does not hold")])
def test_planted_bugs_are_suspected_and_nothing_else(make_context: MakeContext, has_bug: bool, verdict: str) -> None:
    """Sixty of each; ``benchmarks/planted_bugs.py`` has them in whole runs, whatever the developer writes."""
    source = "\n\n".join(each.text(has_bug) for each in planted())
    plan = judged(make_context, source, *(each.item(number) for number, each in enumerate(planted())))
    assert [(each["call"], each["got"], each["reason"]) for each in plan if each["verdict"] != verdict] == []


SHAPES = """
import enum
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

class Err(Exception): ...

class Color(enum.Enum):
    RED = 1

@dataclass
class Point:
    x: int
    y: int

class Odd:
    def __init__(self, value): self.value = value
    def __call__(self): return self.value
    def add(self, n): self.value += n

def give(value): return value
def fail(error): raise error
async def later(value): return value
"""
EXPECTATIONS: list[tuple[str, str, str]] = [
    # expected, a call that gives it, a call that does not
    *(("is:true", call, "give(False)") for call in ("give(True)", "give(1 < 2)")),
    *(("is:false", call, "give(True)") for call in ("give(False)", "give(1 > 2)")),
    *(("[]", call, "give([0])") for call in ("give([])", "give(list())")),
    ("is:none", "give(None)", "give(0)"),
    ('""', 'give("")', 'give(" ")'),
    *((text, "give('abc')", "give('abd')") for text in ('"abc"', "'abc'", "'a' 'bc'")),
    ("raises:ValueError", "fail(ValueError('bad'))", "fail(KeyError(1))"),
    ("raises:ValueError", "fail(ValueError)", "give(1)"),
    ("raises:LookupError", "fail(KeyError(0))", "fail(TypeError('x'))"),
    ("raises:ArithmeticError", "give(1) / give(0)", "give(1) / give(1)"),
    ("raises:Err", "fail(Err('bad'))", "fail(ValueError('bad'))"),
    ("close:3.14", "give(3.141)", "give(3.2)"),
    ("close:0.3", "give(0.1) + give(0.2)", "give(0.1) + give(0.3)"),
    *(("3", call, "give(4)") for call in ("give(3)", "give(1) + 2")),
    *(('{"a": 1}', call, "give({'a': 2})") for call in ("give({'a': 1})", "give(dict(a=1))")),
    ("(1, 2)", "give((1, 2))", "give((2, 1))"),
    ("[1, 2]", "list(give((1, 2)))", "list(give((1, 3)))"),
    ("10 ** 3", "give(1000)", "give(100)"),
    *(("date(2020, 1, 1)", f"give(date(2020, 1, {day}))", "give(date(2020, 1, 2))") for day in ("1", "+1")),
    ("Point(1, 2)", "give(Point(1, 2))", "give(Point(2, 1))"),
    ('Decimal("1.5")', 'give(Decimal("1.50"))', 'give(Decimal("1.6"))'),
    ("Color.RED", "give(Color.RED)", "give(1)"),
    ('b"x"', 'give(b"x")', 'give("x")'),
    ('float("inf")', 'give(float("inf"))', "give(1.0)"),
    ("is:nan", 'give(float("nan"))', "give(0.0)"),
    ("{1, 2}", "give({2, 1})", "give({1})"),
    ("frozenset({1})", "give(frozenset({1}))", "give(frozenset())"),
    ("nothing_raised:", "give(1)", "fail(Err())"),
    ("5", "len(give('abcde'))", "len(give('abcd'))"),
    ("7", "later(7)", "later(8)"),
    ("5", "await later(5)", "await later(6)"),
]


@pytest.mark.real
def test_each_way_to_expect_is_right_either_way(make_context: MakeContext) -> None:
    assert len(EXPECTATIONS) == 39
    calls = [item(2 * place + each, row[1 + each], row[0]) for place, row in enumerate(EXPECTATIONS) for each in (0, 1)]
    found = [each["verdict"] for each in judged(make_context, SHAPES, *calls)]
    assert [(row, found[2 * n : 2 * n + 2]) for n, row in enumerate(EXPECTATIONS)] == [
        (row, ["holds", "does not hold"]) for row in EXPECTATIONS
    ]


NOT_EVALUATED = {
    "give(1)": ("setup", "x = 1 / 0"),
    "give()": "argument",
    "Odd(1).nothing()": "nothing",
    "give(later(1))": "write await",
    "give(open('nowhere'))": "nowhere",
    "give(__import__('random').random())": "twice",
    "give(__import__('os')._exit(3))": "ended its process",
    "give(__import__('not_there'))": "not_there",
    "give(__import__('time').sleep(99))": "no result after 10 s",
}


@pytest.mark.real
def test_what_says_nothing_of_the_code_is_no_bug(make_context: MakeContext) -> None:
    """An item costs itself only, whatever it leaves behind: the last one sees none of it."""
    items = [
        item(n, call, "7", *(why[1:] if isinstance(why, tuple) else ()))
        for n, (call, why) in enumerate(NOT_EVALUATED.items())
    ]
    state = (
        "import threading, time, program",
        "threading.Thread(target=time.sleep, args=(99,)).start()",
        "program.give = id",
    )
    last = [item(90, "program.give(1) > 1", "is:true", *state), item(91, "give(1)", "1")]
    found = judged(make_context, SHAPES, *items, *last)
    for each, why in zip(found, NOT_EVALUATED.values(), strict=False):
        assert each["verdict"] == "cannot be evaluated", each
        assert (why[1] if isinstance(why, tuple) else why) in each["reason"]
    assert [each["verdict"] for each in found[-2:]] == ["holds", "holds"]


REFUSED = [
    (item(1, "give(1", "1"), "call is not Python"),
    (item(1, "len('a')", "1"), "does not use program"),
    (item(1, "give(1)", "give(1)"), "computed by what the call calls"),
    (item(1, "give(1)", "want", "want = give(1)"), "computed by what the call calls"),
    (item(1, "give(1)", "abc"), "a text needs quotes of its own"),
    (item(1, "give(unknown)", "1"), "unknown is neither in its setup"),
    (item(1, "give(1)", "1", *["x = 1"] * 6), "its setup has 6 lines"),
    (item(1, "give(1)", "1", "x = 1; y = 2"), "one statement"),
    (item(1, "give(1)", "raises:ValueError('bad')"), "must be the name of an exception"),
    (item(1, "give(1)", "is:maybe"), "must be true, false, none or nan"),
    (item(1, "give(1)", "1", expect={"equals": "1", "is": "true"}), "exactly one of"),
    (item(1, "give(1)", "1", expect={"close": 1.0, "within": 0}), "within must be a positive number"),
    (item(1, "give(1)", "1", source="docstring", quote="gives what it gets"), "not in the docstrings"),
    (item(1, "give(1)", "1", source="readme"), "not in the README"),
    (item(1, "give(1)", "1", id="below"), "id"),
]


@pytest.mark.parametrize(("planned", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_unusable_item_is_refused_when_it_is_planned(planned: Record, why: str) -> None:
    items, refused = usable(SHAPES, planned)
    assert items == []
    assert why in refused[0]["reason"]


def test_quote_is_found_across_lines_and_the_budget_is_kept() -> None:
    quoted = item(1, "give(1)", "1", source="docstring", quote="gives what it gets")
    items, refused = usable(
        SHAPES, quoted, quoted, item(2, "give(2)", "2"), texts={"docstring": "It gives\n  what it gets."}, most=1
    )
    assert [each["id"] for each in items] == ["P1"]
    assert [each["reason"] for each in refused] == ["the id P1 is taken", "the budget of 1 items is used up"]


def test_tests_that_take_a_suspected_bug_for_right_are_known() -> None:
    (plan,), _ = usable(SHAPES, item(1, "give(1)", "2"))
    bug = {**plan, "verdict": "does not hold", "got": "1"}
    tests = [f"def test_{name}():\n    assert give({n}) == {n}\n" for n, name in enumerate(("it", "other"), 1)]
    right = "\n\n".join(["from program import give\n", *tests])
    assert contrary(right, [bug]) == {"test_it": "P1"}
    assert contrary(right, [{**bug, "source": "observed"}]) == {}
    assert contrary(right, [{**bug, "withdrawn": "wrong"}]) == {}
    assert contrary(right, [{**bug, "withdrawn": "wrong", "source": "readme"}]) == {"test_it": "P1"}
    rows = "@pytest.mark.parametrize('n, v', [(0, 0), (1, 1), (2, 2)])\ndef test_it(n, v):\n    assert give(n) == v\n"
    assert contrary(f"import pytest\nfrom program import give\n\n\n{rows}", [bug]) == {"test_it[1-1]": "P1"}


@pytest.mark.parametrize("gives", ["1", "is:nan", "close:25", "raises:Err", "nothing_raised:"])
@pytest.mark.parametrize("says", ["assert give(2) == 7", "with pytest.raises(OSError):\n        give(2)"])
def test_test_that_says_what_the_call_does_instead_takes_it_for_right(gives: str, says: str) -> None:
    (plan,), _ = usable(SHAPES, item(1, "give(n)", gives, "n = 2"))
    source = f"import pytest\nfrom program import give\n\n\ndef test_it():\n    {says}\n"
    bug = {**plan, "verdict": "does not hold"}
    assert contrary(source, [bug]) == {"test_it": "P1"}
    assert contrary(source.replace("give(2)", "give(3)"), [bug]) == {}
