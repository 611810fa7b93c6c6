"""Python source is parsed for threads that work at the same time."""

from __future__ import annotations

import ast
import gc
import threading
from collections.abc import Callable

import pytest

from codex_multi_role.reading.python_source import NotPython, syntax_tree

SOURCE = "def add(first, second):\n    return [first + second for _ in range(3)]\n" * 5
INTERRUPTIONS, LONGEST_SECONDS = 5, 0.1
MOST_PARSES = 100
"""Python 3.12 and later clean up between two instructions only, so seldom while one text is parsed."""


def parsed_while_another_begins(parse: Callable[[str], object]) -> None:
    """Parse; whenever memory is cleared up meanwhile, another thread gets its chance to do the same."""
    parsing = threading.get_ident()
    others = [threading.Thread(target=parse, args=(SOURCE,)) for _ in range(INTERRUPTIONS)]
    waiting = list(others)

    def let_another(phase: str, _: object) -> None:
        if threading.get_ident() == parsing and phase == "start" and waiting:
            another = waiting.pop()
            another.start()
            another.join(LONGEST_SECONDS)

    thresholds = gc.get_threshold()
    gc.callbacks.append(let_another)
    gc.set_threshold(1)
    try:
        for _ in range(MOST_PARSES):
            if waiting:
                parse(SOURCE)
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(let_another)
        for another in others:
            if another not in waiting:
                another.join()
    assert not waiting


def test_two_threads_do_not_disturb_each_other() -> None:
    parsed_while_another_begins(syntax_tree)


@pytest.mark.parametrize(
    ("source", "said", "line"),
    [
        ("x = 1\ndef (:\n", "^line 2: invalid syntax$", 2),
        ("(" * 300, "^line 1: too many nested parentheses$", 1),
        ("\0", "^cannot be parsed: source code string cannot contain null bytes$", None),
        (b"# coding: nonsense\n", "^cannot be parsed: unknown encoding: nonsense$", None),
        ("+" * 100_000 + "1", "^cannot be parsed: ", None),
    ],
)
def test_invalid_python_reports_reason_and_line(source: str | bytes, said: str, line: int | None) -> None:
    with pytest.raises(NotPython, match=said) as raised:
        syntax_tree(source)
    assert raised.value.line == line


def test_expression_is_read_alone() -> None:
    assert isinstance(syntax_tree("1 + 1", "eval").body, ast.BinOp)
    with pytest.raises(NotPython):
        syntax_tree("x = 1", "eval")


def test_warnings_of_the_parser_are_not_shown(recwarn: pytest.WarningsRecorder) -> None:
    syntax_tree("'\\d' is 1")
    assert not recwarn.list
