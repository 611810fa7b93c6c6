"""The source of a test module, without some of its tests; all else stays as it was written."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst


def without_tests(source: str, tests: Collection[str]) -> str:
    """``source`` without the functions ``tests``, such as ``test_a`` and ``TestX.test_b``.

    A class that is then empty goes, too. Helpers, fixtures and imports stay. Raises ValueError for no Python.
    """
    import libcst

    try:
        module = libcst.parse_module(source)
    except (libcst.ParserSyntaxError, RecursionError) as error:
        raise ValueError(f"the tests cannot be read: {error}") from error
    return module.with_changes(body=_kept(module.body, "", tests)).code


def _kept(body: object, prefix: str, tests: Collection[str]) -> list[libcst.BaseStatement]:
    kept = (_statement(statement, prefix, tests) for statement in body)  # type: ignore[attr-defined]
    return [statement for statement in kept if statement is not None]


def _statement(statement: libcst.BaseStatement, prefix: str, tests: Collection[str]) -> libcst.BaseStatement | None:
    import libcst

    if isinstance(statement, libcst.FunctionDef):
        return None if f"{prefix}{statement.name.value}" in tests else statement
    if isinstance(statement, libcst.ClassDef) and isinstance(statement.body, libcst.IndentedBlock):
        inner = _kept(statement.body.body, f"{prefix}{statement.name.value}.", tests)
        if not inner:
            return None
        return statement.with_changes(body=statement.body.with_changes(body=inner))
    return statement
