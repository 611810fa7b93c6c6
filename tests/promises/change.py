"""How a breakage changes a private copy of the package: what it replaces is a symbol, what replaces it is Python.

One line is added to the module of the symbol: a decorator of the function, or a second value of the constant. So the
change holds in every process that imports the copy, and before any other module can import the symbol.
"""

from __future__ import annotations

import ast
import dis
import inspect
import marshal
import pickle
import shutil
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from tests.promises import replacement

PACKAGE = "codex_multi_role"
PART = "_replacement"
ADDED = f'__import__("{PACKAGE}.{PART}", fromlist=["*"])'
Given = ParamSpec("Given")
Result = TypeVar("Result")
Definition = ast.FunctionDef | ast.ClassDef


class Change(Protocol):
    def module(self) -> str: ...

    def broken(self, source: str) -> str:
        """The ``source`` of the module as broken. Raises `LookupError`, `TypeError` or `ValueError` if it cannot be."""

    def data(self) -> object:
        """What the broken module loads."""


def apply(change: Change, root: Path) -> None:
    """Break the copy at ``root``. Raises as `Change.broken`."""
    path = source_file(change.module(), root)
    path.write_text(change.broken(path.read_text(encoding="utf-8")), encoding="utf-8")
    part = root / PACKAGE / f"{PART}.py"
    shutil.copy(replacement.__file__, part)
    part.with_suffix(".pickle").write_bytes(pickle.dumps(change.data()))


def source_file(module: str, root: Path) -> Path:
    path = root.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@dataclass(frozen=True)
class ReplacedFunction:
    """``by`` is called with the ``original`` first, then with its arguments."""

    original: FunctionType
    by: FunctionType

    def module(self) -> str:
        return self.original.__module__

    def broken(self, source: str) -> str:
        _require_fit(self.original, self.by)
        node = _definition(ast.parse(source), self.original.__qualname__)
        return _with_line(source, node.lineno - 1, node.col_offset, f"@{ADDED}.broken")

    def data(self) -> tuple[bytes, list[object], dict[str, str], dict[str, object]]:
        """``by`` by value, because no module of the package can import that of ``by``, which imports most of them."""
        names = {name: self.by.__globals__[name] for name in _globals(self.by.__code__) if name in self.by.__globals__}
        if ours := [name for name, each in names.items() if getattr(each, "__module__", "").startswith("tests.")]:
            raise ValueError(f"{self.by.__qualname__} uses {', '.join(ours)} of the tests: define it inside")
        modules = {name: each.__name__ for name, each in names.items() if isinstance(each, ModuleType)}
        closure = [cell.cell_contents for cell in self.by.__closure__ or ()]
        return marshal.dumps(self.by.__code__), closure, modules, {name: names[name] for name in names.keys() - modules}


@dataclass(frozen=True)
class ReplacedValue:
    """``name`` of a module or class has another value."""

    owner: ModuleType | type
    name: str
    value: object

    def module(self) -> str:
        return self.owner.__name__ if isinstance(self.owner, ModuleType) else self.owner.__module__

    def broken(self, source: str) -> str:
        tree = ast.parse(source)
        body = tree.body if isinstance(self.owner, ModuleType) else _definition(tree, self.owner.__qualname__).body
        statement = next((each for each in body if self.name in _assigned(each)), None)
        if statement is None or statement.end_lineno is None:
            raise LookupError(f"{self.owner.__name__} assigns no {self.name}")
        if getattr(self.owner, self.name, None) == self.value:
            raise ValueError(f"{self.name} of {self.owner.__name__} has this value anyway: {self.value!r}")
        return _with_line(source, statement.end_lineno, statement.col_offset, f"{self.name} = {ADDED}.value()")

    def data(self) -> object:
        return self.value


def replaced(
    original: Callable[Given, Result], by: Callable[Concatenate[Callable[Given, Result], Given], Result]
) -> ReplacedFunction:
    """``by`` is called in place of ``original``, with ``original`` as its first argument."""
    return ReplacedFunction(function_of(original), function_of(by))


def returns(original: Callable[..., Result], value: Result) -> ReplacedFunction:
    """Calls of ``original`` do nothing but return ``value``."""
    return ReplacedFunction(function_of(original), function_of(lambda *_, **__: copy(value)))


def constant(owner: ModuleType | type, name: str, value: object) -> ReplacedValue:
    """``name`` of a module or class has ``value``; what the module computes from it below has it as well."""
    return ReplacedValue(owner, name, value)


def undecorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function below a decorator that changes its type. What replaces it is decorated in the same way."""
    return function_of(function)


def function_of(of: Callable[..., Any]) -> FunctionType:
    function = inspect.unwrap(getattr(of, "__func__", of))
    if not isinstance(function, FunctionType):
        raise TypeError(f"{of!r} is not a function")
    return function


def _require_fit(original: FunctionType, by: FunctionType) -> None:
    """Raise `TypeError` unless ``by`` can be called like ``original`` and calls its parameters by the same names."""
    parameters = list(inspect.signature(original).parameters.values())
    named = {each.name: each for each in parameters if each.kind is each.KEYWORD_ONLY}
    mine = inspect.signature(by)
    bound = mine.bind(original, *(each for each in parameters if each.name not in named), **named)
    for name, each in list(bound.arguments.items())[1:]:
        if isinstance(each, inspect.Parameter) and name not in (each.name, "_", "__"):
            raise TypeError(f"{by.__qualname__} calls {each.name} of {original.__qualname__} {name}")


def _globals(code: CodeType) -> Iterator[str]:
    """The global names that the code uses, that of functions within it included."""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            yield instruction.argval
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _globals(each)


def _definition(tree: ast.Module, qualified: str) -> Definition:
    body: list[ast.stmt] = tree.body
    for name in qualified.split("."):
        found = [each for each in body if isinstance(each, Definition) and each.name == name]
        if len(found) != 1:
            raise LookupError(f"{qualified}: {len(found)} definitions of {name}, not one")
        body = found[0].body
    return found[0]


def _assigned(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.Assign(targets=targets):
            return [ast.unparse(each) for each in targets]
        case ast.AnnAssign(target=target):
            return [ast.unparse(target)]
    return []


def _with_line(source: str, after: int, indent: int, line: str) -> str:
    lines = source.splitlines(keepends=True)
    return "".join([*lines[:after], f"{' ' * indent}{line}\n", *lines[after:]])
