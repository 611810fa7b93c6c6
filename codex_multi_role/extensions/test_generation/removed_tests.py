"""Remove tests, or single rows of their parameters, from the source of a test file."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from io import StringIO
from itertools import accumulate, product

from codex_multi_role.extensions.measuring.python_targets import syntax_problem
from codex_multi_role.extensions.test_generation.tests_source import Function, functions_in, literal, name_of
from codex_multi_role.reading.python_source import syntax_tree


def without(source: str, names: Collection[str]) -> str:
    """The source without these test functions and the blank lines before them; everything else is unchanged.

    A class with nothing left is removed too, and of ``test_area[1-2]`` only this row of parameters if it can be told
    apart and is not the last one. Raises `NotPython`.
    """
    source, whole = _without_rows(source, names)
    lines = StringIO(source, newline="").readlines()  # str.splitlines knows more line breaks than Python's grammar
    for node in _removed_nodes(syntax_tree(source).body, "", whole):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
        while first and not lines[first - 1].strip():
            first -= 1
        for number in range(first, node.end_lineno or node.lineno):
            lines[number] = ""
    return "".join(lines)


def rows_of(source: str, test: str) -> list[str]:
    """The rows of a test's parameters, as in `without`; the test itself if they cannot be told apart."""
    every = [ids for each in functions_in(source) if each.name == test for _, ids in _rows(each.node)]
    return [f"{test}[{min(ids)}]" for ids in every] if all(every) and every else [test]


def alone(source: str, row: str) -> str:
    """The source without the other rows of the same test; unchanged if ``row`` is none that can be told apart."""
    every = rows_of(source, row.partition("[")[0])
    return without(source, {*every} - {row}) if row in every else source


def _without_rows(source: str, names: Collection[str]) -> tuple[str, set[str]]:
    """The source without the rows of parameters in ``names``, and the names of the tests to remove as a whole."""
    gone: dict[str, set[str]] = {}
    for function, bracket, row in (name.partition("[") for name in names):
        gone.setdefault(function, set()).add(row.removesuffix("]") if bracket else bracket)
    whole = {*gone}
    for test in reversed(functions_in(source)):
        ids, rows = gone.get(test.name, set()), _rows(test.node)
        numbers = [number for number, (_, known) in enumerate(rows) if known & ids]
        if test.name in {*names} or len(numbers) != len(ids) or len(ids) >= len(rows):
            continue
        smaller = _cut(source, [node for node, _ in rows], numbers)
        if not syntax_problem(smaller, ""):
            whole.discard(test.name)
            source = smaller
    return source, whole


def _cut(source: str, elements: Sequence[ast.expr], numbers: Collection[int]) -> str:
    """``source`` without these ``elements`` of a list, each with the comma after it, or before it at the end."""
    starts = [0, *accumulate(len(line.encode()) for line in StringIO(source, newline="").readlines())]
    first = [starts[each.lineno - 1] + each.col_offset for each in elements]
    ends = [starts[(each.end_lineno or 1) - 1] + (each.end_col_offset or 0) for each in elements]
    text, last_kept = source.encode(), max({*range(len(elements))} - {*numbers})
    for number in sorted(numbers, reverse=True):
        is_behind = number > last_kept
        start, end = (ends[number - 1], ends[number]) if is_behind else (first[number], first[number + 1])
        text = text[:start] + text[end:]
    return text.decode()


def _rows(function: Function) -> list[tuple[ast.expr, set[str]]]:
    """The rows of a test with one literal list of parameters, each with the ids that pytest may give it."""
    calls = [each for each in function.decorator_list if name_of(each) == "parametrize"]
    match calls:
        case [ast.Call(args=[names, ast.List(elts=rows) | ast.Tuple(elts=rows)], keywords=[])]:
            given = next(iter(literal(names)), None)
            words = [each.strip() for each in given.split(",")] if isinstance(given, str) else list(given or [])
            return [(row, _ids(row, words, number)) for number, row in enumerate(rows)]
    return []


def _ids(row: ast.expr, names: Sequence[str], number: int) -> set[str]:
    values = [row]
    if isinstance(row, ast.Call) and name_of(row) == "param":
        if given := [each.value for each in row.keywords if each.arg == "id"]:
            return {*map(str, literal(given[0]))}
        values = row.args
    elif len(names) > 1:
        values = getattr(row, "elts", [])
    parts = [_value_ids(value, f"{name}{number}") for name, value in zip(names, values, strict=False)]
    return {"-".join(each) for each in product(*parts)} if len(values) == len(names) else set()


def _value_ids(value: ast.expr, numbered: str) -> set[str]:
    """A class or function is shown by its name, and any other value that is not plain by its parameter's."""
    if isinstance(value, ast.Name | ast.Attribute):
        return {name_of(value), numbered}
    match literal(value):
        case [str(text)]:
            return {text.encode("unicode_escape").decode("ascii")}
        case [int() | float() | complex() | None as plain]:
            return {str(plain)}
    return {numbered}


def _removed_nodes(body: list[ast.stmt], prefix: str, names: Collection[str]) -> Iterator[Function | ast.ClassDef]:
    for node in body:
        if isinstance(node, Function) and f"{prefix}{node.name}" in names:
            yield node
        elif isinstance(node, ast.ClassDef):
            removed = list(_removed_nodes(node.body, f"{prefix}{node.name}::", names))
            yield from [node] if set(node.body) <= set(removed) else removed
