"""Tests that are gone from where they were, and whether their functions stand elsewhere, by their source. Pure."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import PurePosixPath

from codex_multi_role.checks.test_changes import PASSED, Outcomes, function_of

DEFAULT_NAMES = ("test_*.py", "*_test.py")
Read = Callable[[str], str | None]
"""The text of a file by its path, as ids have it; None without one."""


@dataclass(frozen=True)
class FunctionSource:
    """``whole``: with its decorators; ``body``: its arguments and statements.

    ``assertions``: their forms, without the values and names in them.
    """

    whole: str
    body: str
    assertions: tuple[str, ...]


def is_test_file(path: str) -> bool:
    """Whether pytest collects it by default."""
    return any(fnmatchcase(PurePosixPath(path).name, glob) for glob in DEFAULT_NAMES)


def functions_in(text: str) -> dict[str, FunctionSource]:
    """The test functions of a module by their names, ``TestA::test_b``; empty if it cannot be parsed."""
    try:
        return _functions(ast.parse(text), "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _functions(node: ast.Module | ast.ClassDef, within: str) -> dict[str, FunctionSource]:
    """Those of classes too, also what they inherit from classes in the same module."""
    found: dict[str, FunctionSource] = {}
    for each in node.body:
        if isinstance(each, ast.ClassDef):
            own = f"{within}{each.name}::"
            for base in [f"{within}{base.id}::" for base in reversed(each.bases) if isinstance(base, ast.Name)]:
                found |= {f"{own}{name.removeprefix(base)}": found[name] for name in [*found] if name.startswith(base)}
            found |= _functions(each, own)
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test"):
            is_told = ast.get_docstring(each, clean=False) is not None
            body = "".join(map(ast.dump, (each.args, *each.body[is_told:])))
            found[f"{within}{each.name}"] = FunctionSource(ast.dump(each), body, tuple(_assertions(each)))
    return found


def _assertions(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            yield ast.dump(_Form().visit(node.test))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "").startswith("assert"):
            yield ast.dump(_Form().visit(node))


class _Form(ast.NodeTransformer):
    """What is called stays, any other name or value is as good as another."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        arguments = [self.visit(each) for each in node.args]
        return ast.Call(node.func, arguments, [ast.keyword(each.arg, self.visit(each.value)) for each in node.keywords])

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(None)

    visit_Constant = visit_Name  # type: ignore[assignment]  # noqa: N815


@dataclass(frozen=True)
class TestSources:
    """Test functions in the files of two states; ``files``: the paths of the earlier one."""

    __test__ = False

    files: Collection[str]
    before: Read
    now: Read

    def gone_files(self) -> list[str]:
        """The test files of the earlier state that the later one has no longer."""
        return [path for path in self.files if is_test_file(path) and self.now(path) is None]

    def gone(self) -> list[str]:
        """The test functions, or whole files without any, of which the same is true."""
        known = {path: functions_in(self.before(path) or "") for path in self.files if is_test_file(path)}
        functions = [
            f"{path}::{name}"
            for path, names in known.items()
            for name in names.keys() - functions_in(self.now(path) or "")
        ]
        return sorted([*functions, *(path for path in self.gone_files() if not known[path])])

    def moved(self, removed: Collection[str], before: Outcomes, after: Outcomes) -> set[str]:
        """Those of the ``removed`` whose function is elsewhere, or takes parameters now, and passes there.

        No function stands for two. ``before``: what was known of the tests then, to tell what is new.
        """
        old = cache(lambda place: _function(self.before, place))
        now = cache(lambda place: _function(self.now, place))
        new = _by_function([test for test, outcome in after.items() if outcome == PASSED and test not in before])
        found, taken = set[str](), set[str]()
        for place, tests in _by_function(removed).items():
            function = old(place)
            targets = (each for each in new if each not in taken) if function else ()
            for target in targets:
                if _stands_for(function, now(target), tests, new[target], same_place=place == target):
                    found |= {*tests}
                    taken.add(target)
                    break
        return found


def _by_function(tests: Collection[str]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        found[function_of(test)].append(test)
    return found


def _function(read: Read, place: str) -> FunctionSource | None:
    path, _, name = place.partition("::")
    text = read(path) if name else None
    return functions_in(text).get(name) if text is not None else None


def _stands_for(
    old: FunctionSource | None, new: FunctionSource | None, tests: list[str], cases: list[str], *, same_place: bool
) -> bool:
    if old is None or new is None:
        return False
    if same_place and old.whole == new.whole:  # what it gets by its parameters has changed, as a version does
        return len(cases) >= len(tests)
    parameters, given = ({test.partition("[")[2] for test in each} for each in (tests, cases))
    if old.body == new.body and not same_place and (parameters <= given or parameters == {""}):
        return True
    is_kept = bool(old.assertions) and {*old.assertions} <= {*new.assertions}
    return (
        parameters == {""} and "" not in given and is_kept and len(cases) * len(new.assertions) >= len(old.assertions)
    )
