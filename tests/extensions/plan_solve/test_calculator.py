"""The calculator is exact where fractions are, bounded always, and runs nothing."""

from __future__ import annotations

from decimal import Context, Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.extensions.plan_solve.calculator import calculate
from tests.support.tools import call


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("0.1 + 0.2", "0.3"),
        ("1/3*3", "1"),
        ("2**300", str(2**300)),
        ("3.14159265358979323846264338327950288", "3.14159265358979323846264338327950288"),
        ("round(pi * 5**2, 2)", "78.54"),
        ("round(2.5)", "3"),
        ("round(-2.675, 2)", "-2.68"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("sqrt(16) + cbrt(27)", "7"),
        ("log(8, 2) + log10(1000) + log2(8) + ln(e)", "10"),
        ("sin(pi)", "0"),
        ("degrees(atan2(1, 1))", "45"),
        ("max(1, hypot(3, 4), factorial(3))", "6"),
        ("1_000 * 1.1", "1100"),
        ("floor(-0.5) + ceil(0.5)", "0"),
        ("1/3 + 1/3", f"0.{'6' * 29}7"),
        ("pi", "3.14159265358979"),
        ("sin(1e-20)", "0.00000000000000000001"),
        ("floor(log(125, 5)) + log10(10**500)", "503"),
        ("sqrt(2)**2", "2"),
        ("(1 + 0.05 / 365)**3650", "1.6486648137654718302139994212"),
        ("-9 // 2.5 + 10**500 // 10**498", "96"),
    ],
)
def test_value(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("1/0", "division by zero"),
        ("5 % 0", "division by zero"),
        ("0**-1", "division by zero"),
        ("0**0", "not defined"),
        ("sqrt(-1)", "not a real number"),
        ("(-8)**(1/3)", "not a real number"),
        ("9**9**9**9", "too large"),
        ("exp(exp(exp(9)))", "too large"),
        ("1e-2000", "too small"),
        ("1e99999999999999999999", "too large"),
        ("2**10**300", "too large"),
        ("exp(-1000)", "too small"),
        ("log(5, 1)", "not a real number"),
        ("factorial(10**9)", "from 0 to"),
        ("round(1, 10**9)", "whole number"),
        ("1+" * 400 + "1", "parts"),
        ("2^3", "write powers as [*][*]"),
        ("x + 1", "not supported: 'x'"),
        ("max()", "takes 1 to"),
        ("1 +", "no expression"),
        ("\0", "no expression"),
        ("'a' * 9", "not supported"),
        ("__import__('os').system('ls')", "not supported"),
        ("().__class__", "not supported"),
        ("[1 for _ in (1,)]", "not supported"),
        ("(lambda: 1)()", "not supported"),
    ],
)
def test_what_is_refused(expression: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        calculate(expression)


@given(st.decimals(-1000, 1000, places=6), st.decimals(-1000, 1000, places=6))
def test_sums_and_products_are_exact(left: Decimal, right: Decimal) -> None:
    exact = Context(prec=100)
    assert Decimal(calculate(f"{left:f} + ({right:f})")) == exact.add(left, right)
    assert Decimal(calculate(f"{left:f} * ({right:f})")) == exact.multiply(left, right)


@given(st.text(alphabet="0123456789.+-*/%()e, pisqrtlnogamxcb", max_size=40))
def test_any_text_gives_a_number_or_a_reason(text: str) -> None:
    try:
        Decimal(calculate(text))
    except ValueError:
        return


def test_tool_answers_or_says_why_not(tmp_path: Path) -> None:
    answered = call("calculator", {"expression": "100 * 1.1"}, tmp_path)
    assert (answered.text, answered.keep) == ("110", {"calculations": ["100 * 1.1 = 110"]})
    refused = call("calculator", {"expression": "1/0"}, tmp_path)
    assert (refused.text, refused.success) == ("division by zero", False)
