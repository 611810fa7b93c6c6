"""What each operator makes of a line, in the order that numbers the mutants: recorded runs have such ids."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst", reason="the extra [mutation] is not installed")

from codex_multi_role.extensions.test_generation.mutated_file import MutatedFile

CHANGES: dict[str, list[tuple[str, str]]] = {
    "return n + 1": [("swap_op", "return n - 1"), ("number", "return n + 2")],
    "return n < 2 and not m": [
        ("swap_op", "return n < 2 or not m"),
        ("swap_op", "return n <= 2 and not m"),
        ("number", "return n < 3 and not m"),
        ("remove_unary_ops", "return n < 2 and m"),
    ],
    "return n is m in s": [("keywords", "return n is not m in s"), ("keywords", "return n is m not in s")],
    "return 1e308 * 1e999 + 2j": [
        ("swap_op", "return 1e308 * 1e999 - 2j"),
        ("swap_op", "return 1e308 / 1e999 + 2j"),
        ("number", "return 1e+308 * 1e999 + 2j"),
        ("number", "return 1e308 * 1e999 + 3j"),
    ],
    "n += 1": [("augmented_assignment", "n = 1"), ("swap_op", "n -= 1"), ("number", "n += 2")],
    "n: int = None": [("assignment", 'n: int = ""')],
    "n = m": [("assignment", "n = None")],
    "return 'A\\n\\x41b'": [
        ("string", "return 'XXA\\n\\x41bXX'"),
        ("string", "return 'a\\n\\x41b'"),
        ("string", "return 'A\\n\\x41B'"),
    ],
    "return r'\\d'": [("string", "return r'XX\\dXX'")],
    'return """a document"""': [],
    "return deepcopy, True": [("name", "return copy, True"), ("name", "return deepcopy, False")],
    "return dict(a=n)": [("dict_arguments", "return dict(aXX=n)"), ("arg_removal", "return dict(a=None)")],
    "return f(None, *n)": [("arg_removal", "return f(*n)"), ("arg_removal", "return f(None, )")],
    "return s.lower()": [("symmetric_string_methods_swap", "return s.upper()")],
    "return s.split()": [],
    "return s.split(maxsplit=n)": [
        ("arg_removal", "return s.split(maxsplit=None)"),
        ("unsymmetrical_string_methods_swap", "return s.rsplit(maxsplit=n)"),
    ],
    "return lambda: None": [("lambda", "return lambda: 0")],
    "return n if m or s else 0": [
        ("if_exp", "return n if (m or s) and False else 0"),
        ("if_exp", "return n if (m or s) or True else 0"),
        ("swap_op", "return n if m and s else 0"),
        ("number", "return n if m or s else 1"),
    ],
    "return len([n])": [],
}


@pytest.mark.parametrize("line", CHANGES)
def test_changes_of_a_line_keep_their_order(line: str) -> None:
    mutants = MutatedFile(f"def f(n, m, s):\n    {line}\n").sample(99, seed=0)
    assert [(mutant.operator, mutant.diff.partition("\n+    ")[2]) for mutant in mutants] == CHANGES[line]


def test_each_case_of_a_match_is_left_out_once() -> None:
    mutants = MutatedFile("def f(n):\n    match n:\n        case []: pass\n        case _: pass\n").sample(99, seed=0)
    assert [(mutant.id, mutant.diff) for mutant in mutants if mutant.operator == "match"] == [
        ("2.1", "-        case []: pass"),
        ("2.2", "-        case _: pass"),
    ]
