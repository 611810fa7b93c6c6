"""Which answers of a developer change what a failing test expects, and which are honest corrections.

Each case is a pair of answers: the test fails with the first, and everything passes with the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from codex_multi_role.extensions.test_generation.expectations import checks_in
from codex_multi_role.extensions.test_generation.testgen_state import advance_state
from tests.support.checks import MakeContext
from tests.support.generation import item
from tests.support.teams import Record

LIMITS = {"max_iterations": 5, "target_coverage": 100.0}
GREEN = {
    **{"reason": "", "crashed": False, "passed": 2, "failed": 0, "errors": 0, "failures": []},
    **{"coverage": 100.0, "uncovered": [], "output_tail": ""},
}
COMPARED = "    def test_p1():\n>       assert ...\nE       assert 1 == 0\n\ntests/test_one.py:5: AssertionError"
NAME = "E   NameError: name 'sing' is not defined\n\ntests/test_one.py:5: NameError"
NO_FILE = "E   FileNotFoundError: no such file\n\ntests/test_one.py:5: FileNotFoundError"
IN_TARGET = "tests/test_one.py:5: \n_ _ _\nE   KeyError: 0\n\none.py:3: KeyError"
NAMES = "sign, is_even, load, f, finance, Cart"
HEAD = f"import pytest\nfrom one import {NAMES}\n\n\ndef test_other():\n    assert sign(5) == 1\n\n\n"
ZERO = "def test_p1_zero():\n    assert sign(0) == 0\n"
EVEN = "def test_p2_even():\n    assert is_even(2)\n"
RAISES = "def test_p3_load():\n    with pytest.raises(KeyError):\n        load(0)\n"
TWICE = ZERO + "    assert sign(0.0) == 0\n"
LETTER = "def test_x():\n    end = '\\n'\n    assert load(1) == f'0{end}'\n"
ONES = "def test_x():\n    from ones import sign\n\n    assert sign(0) == 0\n"
READS = "def test_x():\n    path = 'one.txt'\n    assert load(path) == 1\n"
NAMED = "def test_p1():\n    zero = 0\n    assert sign(0) == zero\n"
BELOW = "def test_p4_below():\n    assert sign(-3) == -1\n"
CHECKED = "def check(value, expected):\n    assert value == expected\n\n\n"
HELPED = f"{CHECKED}def test_p1_zero():\n    check(sign(0), 0)\n"
ROWS = (
    "@pytest.mark.parametrize('n, expected', [(0, 0), (5, 1)])\n"
    "def test_p1(n, expected):\n    assert sign(n) == expected\n"
)
FIXED = (
    "@pytest.fixture\ndef expected():\n    return 0\n\n\ndef test_p1_zero(expected):\n    assert sign(0) == expected\n"
)
CONSTANT = "ZERO = 0\n\n\ndef test_p1_zero():\n    assert sign(0) == ZERO\n"
NEAR = "def test_p5_near():\n    assert sign(0.5) == pytest.approx(0.5)\n"
CART = "def test_p6_cart():\n    cart = Cart()\n    cart.add(3)\n    assert cart.total() == 3\n"
CLASS = "class TestZero:\n    WANTED = 0\n\n    def test_p1_zero(self):\n        assert sign(0) == self.WANTED\n"
ONE = "".join(f"def {name}(n): ...\n" for name in ("sign", "is_even", "load", "f", "finance"))
ONE += "class Cart:\n    def add(self, n): ...\n    def total(self): ...\n"
KNOWN = {"facts": {"content": ONE, "docstrings": "", "readme": "", "callers": ""}, "module": "one"}
PLAN = [
    item("P1", "0", given="0"),
    item("P2", "True", target="is_even", given="2"),
    item("P3", "KeyError", target="load", given="0"),
    item("P4", "-1", given="-3"),
    item("P5", 0.5, given="0.5"),
    item("P6", "3", target="cart.total", setup=["cart = Cart()", "cart.add(3)"]),
    item("P7", False, target="is_even", given="3"),
    item("P8", "nan", target="finance", expect={"is": "nan"}),
]

RAISES_IT = "with pytest.raises(ValueError):\n        f()"
CASES: list[tuple[object, str, list[str]]] = [
    ("1", "assert f() == 1", ["assert f() == -1"]),
    (1, "assert f() == 1", ["assert f() == -1"]),
    (True, "assert f() is True", ["assert f() is not True", "assert not (f() is True)"]),
    (
        "3",
        "assert f() == 3",
        [
            *("assert f() != 3", "assert f() in (3, 4)", "assert f() == 4  # not 3", "assert f() == 4, 'not 3'"),
            *("assert f() >= 3", "for i in (3,): assert f(i) == 4", "x = 3\n    assert f(x) == 7"),
        ],
    ),
    (
        "ValueError",
        RAISES_IT,
        [
            "try:\n        f()\n    except ValueError:\n        pass",
            *(RAISES_IT.replace("ValueError", wider) for wider in ("(ValueError, TypeError)", "Exception")),
        ],
    ),
    (None, "assert f() is None", ["assert f() is not None"]),
    ("[]", "assert f() == []", ["assert f() != []"]),
    ("2", "assert f() == 2", ["assert len(f()) == 3\n    assert f()[2] == 1"]),
    ("0", "assert f() == 0", ["assert f()[0] == 7"]),
    ("'a'", "assert f() == 'a'", ["d = {'a': 1}\n    assert f(d) == 2"]),
]
"""What the plan expects of ``f()``, a test that states it, and those that give in, nineteen in all."""
NOTHING = [
    *("r = f()\n    assert r == r", "assert isinstance(f(), int)", "assert len([1]) == 1", "f()\n    assert True"),
    *("if False: assert f() == 3", "assert (f() == 3, 'x')", "def inner(): assert f() == 3", "f() == 3"),
]
"""Instead of ``assert f() == 3``."""
GIVING_IN: dict[str, tuple[str, str]] = {
    "another value": (ZERO, ZERO.replace("== 0", "== 1")),
    "negated": (EVEN, EVEN.replace("assert", "assert not")),
    "boolean compared": (EVEN, EVEN.replace("is_even(2)", "is_even(2) == False")),
    "boolean to None": (EVEN, EVEN.replace("is_even(2)", "is_even(2) is None")),
    "no longer negated": ("def test_p7():\n    assert not is_even(3)\n", "def test_p7():\n    assert is_even(3)\n"),
    "other direction": ("def test_x():\n    assert sign(0) < 1\n", "def test_x():\n    assert sign(0) > 0\n"),
    "raises added": (
        ZERO,
        "def test_p1_zero():\n    with pytest.raises(AssertionError):\n        assert sign(0) == 0\n",
    ),
    "exception to value": (RAISES, "def test_p3_load():\n    assert load(0) == 1\n"),
    "wide tolerance": (NEAR, NEAR.replace("approx(0.5)", "approx(0.5, abs=10)")),
    "true or": (ZERO, ZERO.replace("assert", "assert True or")),
    "or the actual value": (ZERO, ZERO.replace("== 0", "== 0 or sign(0) == 1")),
    "one of two assertions removed": (TWICE, ZERO),
    "beside what the plan says": (f"{ZERO}    assert sign(5) == 2\n", f"{ZERO}    assert sign(5) == 1\n"),
    "test removed": (ZERO, ""),
    "test emptied": (ZERO, "def test_p1_zero():\n    pass\n"),
    "skipped": (ZERO, f"@pytest.mark.skip\n{ZERO}"),
    "expected to fail": (ZERO, f"@pytest.mark.xfail\n{ZERO}"),
    "whole module skipped": (ZERO, f"pytestmark = pytest.mark.skip\n\n\n{ZERO}"),
    "skipped inside": (ZERO, ZERO.replace("    assert", "    pytest.skip('later')\n    assert")),
    "returns before": (ZERO, ZERO.replace("    assert", "    return\n    assert")),
    "never collected": (ZERO, ZERO.replace("test_p1_zero", "check_p1_zero")),
    "deleted at the end": (ZERO, f"{ZERO}\n\ndel test_p1_zero\n"),
    "replaced at the end": (ZERO, f"{ZERO}\n\ntest_p1_zero = None\n"),
    "not a test class": (CLASS, CLASS.replace("    WANTED", "    __test__ = False\n    WANTED")),
    "renamed and changed": (ZERO, "def test_p1_none():\n    assert sign(0) == 1\n"),
    "value in a variable": (ZERO, "def test_p1_zero():\n    expected = 1\n    assert sign(0) == expected\n"),
    "value in a constant": (CONSTANT, CONSTANT.replace("ZERO = 0", "ZERO = 1")),
    "value in a text": (LETTER, LETTER.replace("f'0", "f'1")),
    "value in a fixture": (FIXED, FIXED.replace("return 0", "return 1")),
    "value in a class": (CLASS, CLASS.replace("WANTED = 0", "WANTED = 1")),
    "value in a row": (ROWS, ROWS.replace("(0, 0)", "(0, 1)")),
    "row removed": (ROWS, ROWS.replace("(0, 0), ", "")),
    "row skipped": (ROWS, ROWS.replace("(0, 0)", "pytest.param(0, 0, marks=pytest.mark.skip)")),
    "moved into a row": (
        ZERO,
        "@pytest.mark.parametrize('n, e', [(0, 1)])\ndef test_p1_zero(n, e):\n    assert sign(n) == e\n",
    ),
    "value in a helper's call": (HELPED, HELPED.replace("(0), 0)", "(0), 1)")),
    "helper weakened": (HELPED, HELPED.replace("value == expected", "value is not None")),
    "moved into a helper": (ZERO, HELPED.replace("(0), 0)", "(0), 1)")),
    "result shifted": (ZERO, ZERO.replace("sign(0) ==", "sign(0) - 1 ==")),
    "try around": (
        ZERO,
        "def test_p1_zero():\n    try:\n        assert sign(0) == 0\n    except AssertionError:\n        pass\n",
    ),
    "suppressed": (
        ZERO,
        "import contextlib\ndef test_p1_zero():\n    with contextlib.suppress(AssertionError):\n"
        "        assert sign(0) == 0\n",
    ),
    "behind a condition": (ZERO, "def test_p1_zero():\n    if sign(0) == 0:\n        assert sign(0) == 0\n"),
    "loop over nothing": (ZERO, "def test_p1_zero():\n    for n in []:\n        assert sign(n) == 0\n"),
    "target patched": (ZERO, f"from unittest import mock\n@mock.patch('one.sign', lambda n: 0)\n{ZERO}"),
    "target patched inside": (
        ZERO,
        "def test_p1_zero(monkeypatch):\n    monkeypatch.setattr('one.sign', int)\n    assert sign(0) == 0\n",
    ),
    "patched by a fixture": (
        ZERO,
        f"@pytest.fixture(autouse=True)\ndef patched(monkeypatch):\n"
        f"    monkeypatch.setattr('one.sign', int)\n\n\n{ZERO}",
    ),
    "patched by the module": (ZERO, f"import one\none.sign = int\n\n\n{ZERO}"),
    "a conftest that patches": (ZERO, f"open('conftest.py', 'w').write('import one; one.sign = int')\n\n\n{ZERO}"),
    "target redefined": (ZERO, f"def sign(n):\n    return 0\n\n\n{ZERO}"),
    "target imported from elsewhere": (ZERO, f"from fakes import sign\n\n\n{ZERO}"),
    "another function": (ZERO, ZERO.replace("sign(0)", "int(0)")),
    "another input": (BELOW.replace("-1", "0").replace("-3", "0").replace("p4", "p1"), ZERO.replace("(0)", "(5)")),
    "another input that gives it": (BELOW, BELOW.replace("-3", "-4")),
    "another set-up": (CART, CART.replace("    cart.add(3)\n", "    cart.add(1)\n    cart.add(2)\n")),
    "match removed from its own test": (RAISES + "    assert load(2) == 4\n", RAISES),
    "identity weakened": ("def test_p2():\n    assert is_even(2) is True\n", "def test_p2():\n    assert is_even(2)\n"),
}
"""The first answer is right and the code is not."""
WAYS = {f"{wanted!r} {text}": (wanted, said, text) for wanted, said, all_ in CASES for text in all_}
WAYS |= {text: ("3", "assert f() == 3", text) for text in NOTHING}

HONEST: dict[str, tuple[str, str, str]] = {
    "import": (NAME, ONES, ONES.replace("ones", "one")),
    "typo": (NAME, ZERO.replace("sign", "sing"), ZERO),
    "typo of the expected value": (NAME, NAMED.replace("== zero", "== zreo"), NAMED),
    "path": (NO_FILE, READS, READS.replace("one.txt", "data/one.txt")),
    "set-up of a fixture": (
        NO_FILE,
        "@pytest.fixture\ndef path(tmp_path):\n    file = tmp_path / 'a'\n"
        "    return file\n\n\ndef test_x(path):\n    assert load(path) == 1\n",
        "@pytest.fixture\ndef path(tmp_path):\n    file = tmp_path / 'a'\n"
        "    file.write_text('1')\n    return file\n\n\ndef test_x(path):\n    assert load(path) == 1\n",
    ),
    "formatting": (COMPARED, ZERO, "def test_p1_zero():\n    # zero\n    assert (\n        sign( 0 ) == 0x0\n    )\n"),
    "message": (COMPARED, ZERO, ZERO.replace("== 0", "== 0, 'zero has no sign'")),
    "docstring": (COMPARED, ZERO, ZERO.replace("():\n", "():\n    '''Zero.'''\n")),
    "split": (COMPARED, TWICE, ZERO + "\n\ndef test_p1_float():\n    assert sign(0.0) == 0\n"),
    "another test": (COMPARED, ZERO, f"{ZERO}\n\n{BELOW}"),
    "another assertion": (COMPARED, ZERO, TWICE),
    "towards the plan": (COMPARED, ZERO.replace("== 0", "== 1"), ZERO),
    "sign towards the plan": (COMPARED, BELOW.replace("== -1", "== 1"), BELOW),
    "boolean towards the plan": (COMPARED, EVEN.replace("is_even(2)", "is_even(2) is False"), EVEN),
    "input towards the plan": (COMPARED, BELOW.replace("-3", "3"), BELOW),
    "exception towards the plan": (IN_TARGET, "def test_p3_load():\n    assert load(0) == 1\n", RAISES),
    "nan towards the plan": (
        COMPARED,
        "def test_x():\n    assert finance() == 1\n",
        "from math import isnan\n\n\ndef test_x():\n    assert isnan(finance())\n",
    ),
    "tolerance for a float": (COMPARED, NEAR.replace("pytest.approx(0.5)", "0.5"), NEAR),
    "order": (COMPARED, f"{ZERO}\n\n{EVEN}", f"{EVEN}\n\n{ZERO}"),
    "order of assertions": (COMPARED, TWICE, ZERO.replace("(0)", "(0.0)") + "    assert sign(0) == 0\n"),
    "renamed variable": (COMPARED, NAMED, NAMED.replace("zero", "nothing")),
    "variable introduced": (
        COMPARED,
        ZERO,
        "def test_p1_zero():\n    result, expected = sign(0), 0\n    assert result == expected\n",
    ),
    "rows": (COMPARED, ZERO, ROWS),
    "renamed test": (COMPARED, ZERO, ZERO.replace("p1_zero", "p1_none")),
    "into a class": (COMPARED, ZERO, "class TestZero:\n    def test_p1_zero(self):\n        assert sign(0) == 0\n"),
    "import of the module": (COMPARED, ZERO, f"import one\n\n\n{ZERO.replace('sign', 'one.sign')}"),
    "identity": (COMPARED, EVEN, EVEN.replace("is_even(2)", "is_even(2) is True")),
    "unused import": (COMPARED, ZERO, f"import os\n\n\n{ZERO}"),
    "passing test": (COMPARED, f"{ZERO}\n\n{BELOW}", f"{ZERO}\n\n{BELOW}    assert sign(-4) == -1\n"),
}
"""The message of the failure, and both answers."""


def verdict(
    make_context: MakeContext, first: str, second: str, message: str = COMPARED, plan: Sequence[Record] = PLAN
) -> Record:
    """The result for ``second`` after the first test of ``first`` failed; what comes before it never fails."""
    name = "tests.test_one" + (
        ".TestZero" if "class TestZero" in first else ".TestIt" if "class TestIt" in first else ""
    )
    test = "test_" + first.partition("def test_")[2].partition("(")[0]
    failed = {**GREEN, "passed": 1, "failed": 1, "failures": [{"test": f"{name}::{test}", "message": message}]}
    result: dict[str, Any] = {"state": {}}
    planned = advance_state(make_context({}, state={}, limits=LIMITS, planned=[*plan], **KNOWN))
    result = {"state": planned["state"]}
    for code, measured in ((first, failed), (second, GREEN)):
        tests = {"path": "tests/test_one.py", "content": HEAD + code}
        context = make_context({}, state=result["state"], limits=LIMITS, tests=tests, executed=measured)
        result = advance_state(make_context({}, state=advance_state(context)["state"], limits=LIMITS, judged={}))
    return result


@pytest.mark.parametrize("way", WAYS)
def test_way_of_giving_in_from_outside_is_rolled_back(make_context: MakeContext, way: str) -> None:
    wanted, *texts = WAYS[way]
    first, second = (f"def test_it():\n    {text}\n" for text in texts)
    number = {"expect": {"equals": wanted}} if type(wanted) is int else {}
    result = verdict(make_context, first, second, plan=[{**item("P1", wanted, "f"), **number}])
    assert (result["status"], result["next"]) == ("rolled back", "develop")


@pytest.mark.parametrize("way", GIVING_IN)
def test_giving_in_is_rolled_back(make_context: MakeContext, way: str) -> None:
    result = verdict(make_context, *GIVING_IN[way])
    assert (result["status"], result["next"]) == ("rolled back", "develop")


@pytest.mark.parametrize("correction", HONEST)
def test_honest_correction_is_kept(make_context: MakeContext, correction: str) -> None:
    message, first, second = HONEST[correction]
    result = verdict(make_context, first, second, message)
    assert (result["status"], result["reason"]) == ("kept", "")


def test_row_about_a_suspected_bug_excuses_itself_only(make_context: MakeContext) -> None:
    """Another row that fails is a failure to fix, and giving in to it is noticed."""
    planned = advance_state(make_context({}, state={}, limits=LIMITS, planned=PLAN, **KNOWN))
    bug = {"P1": {"verdict": "does not hold", "got": "1", "reason": ""}}
    state: Any = advance_state(make_context({}, state=planned["state"], limits=LIMITS, verdicts=bug))["state"]
    failures = [{"test": f"tests.test_one::test_p1[{row}]", "message": COMPARED} for row in ("0-0", "5-2")]
    red = {**GREEN, "passed": 1, "failed": 2, "failures": failures}
    found = []
    for five, measured in ((2, red), (1, {**red, "failed": 1, "failures": failures[:1]})):
        tests = {"path": "tests/test_one.py", "content": HEAD + ROWS.replace("(5, 1)", f"(5, {five})")}
        executed = advance_state(make_context({}, state=state, limits=LIMITS, tests=tests, executed=measured))
        state = advance_state(make_context({}, state=executed["state"], limits=LIMITS, judged={}))["state"]
        found.append((state["attempt"]["failed"], [each["assertion"] for each in state["attempt"]["away"]]))
    assert found == [(1, []), (0, ["assert sign(n) == expected"])]


def test_developer_of_a_duel_that_gives_in_loses(make_context: MakeContext) -> None:
    """It has fewer failures than the other one, and the tests of both are not merged."""
    failed = {**GREEN, "passed": 1, "failed": 1, "failures": [{"test": "tests.test_one::test_p1_zero", "message": ""}]}
    kept = {"path": "tests/test_one.py", "content": HEAD + ZERO}
    planned = advance_state(make_context({}, state={}, limits=LIMITS, planned=PLAN, **KNOWN))
    context = make_context({}, state=planned["state"], limits=LIMITS, tests=kept, executed=failed)
    state = advance_state(make_context({}, state=advance_state(context)["state"], limits=LIMITS, judged={}))["state"]
    changed = {"path": "tests/test_one.py", "content": HEAD + ZERO.replace("== 0", "!= 0")}
    candidates = [
        {"vars": {"developer": name}, "steps": {"write": file, "execute": measured}}
        for name, file, measured in (("first", changed, GREEN), ("second", kept, failed))
    ]
    limits = {**LIMITS, "merge": True}
    result: dict[str, Any] = advance_state(make_context({}, state=state, limits=limits, compared=candidates))
    assert (result["winner"], result["next"]) == (1, "take")
    assert result["state"]["attempt"]["away"] == []


@pytest.mark.parametrize("way", ["negated", "other direction"])
def test_changed_assertion_is_in_the_round(make_context: MakeContext, way: str) -> None:
    """With the item of the plan that is about the same call, if there is one."""
    (round_,) = verdict(make_context, *GIVING_IN[way])["state"]["rounds"][1:]
    expected = {
        "negated": {"test": "test_p2_even", "assertion": "assert is_even(2)", "id": "P2", "expected": "True"},
        "other direction": {"test": "test_x", "assertion": "assert sign(0) < 1", "id": "P1", "expected": "0"},
    }
    assert round_["away"] == [expected[way]]


def test_expression_that_doubles_itself_is_bounded() -> None:
    """Each variable is twice the one before: their values would not fit into memory."""
    doubled = "".join(f"    a{number + 1} = (a{number}, a{number})\n" for number in range(60))
    source = f"def test_x(a0):\n{doubled}    assert f(a60) == a60\n"
    (check,) = checks_in(source)["test_x"]
    assert len(check.subject[0]) < 100_000
