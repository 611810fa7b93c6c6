"""Items of a test plan as data: which ones are usable, and the test that each stands for."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any, Final, Literal, TypeGuard

from pydantic import Field, ValidationError

from codex_multi_role.checks import ResultPart
from codex_multi_role.extensions.test_generation.tests_source import Function, name_of
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.python_source import NotPython, syntax_tree

QUOTED = {"docstring": "docstrings of the file", "readme": "README", "caller": "code that calls it"}
"""By the source of an item that has a quote, where the quote is."""
OBSERVED: Final = "observed"
HOLDS: Final = "holds"
FAILS: Final = "does not hold"
UNKNOWN: Final = "cannot be evaluated"
MAX_SETUP_LINES = 5
"""With these, a test has about ten lines."""
MIN_QUOTE_CHARACTERS = 4
MAX_CHARACTERS = 1_000
IDENTITIES = {"true": True, "false": False, "none": None}
KINDS = ("equals", "raises", "is", "close", "nothing_raised")
SIZES = {"raises": ("match",), "close": ("within",)}
"""The fields that a kind of expectation has besides its own."""


class PlanItem(ResultPart):
    """What ``call`` is expected to do after the statements of ``setup``, and who says so."""

    id: str = Field(pattern="^[A-Z]{1,3}[0-9]{1,4}$")
    why: str = Field(min_length=1, max_length=MAX_CHARACTERS)
    source: Literal["docstring", "readme", "caller", "name", "observed"]
    quote: str = ""
    setup: list[str] = Field(default=[])
    call: str = Field(min_length=1, max_length=MAX_CHARACTERS)
    expect: dict[str, str | bool | int | float]


class JudgedItem(PlanItem):
    """``test`` is the item as a function, ``expected`` in words. ``verdict`` is empty until the test has run.

    ``got`` is the value or exception instead, ``reason`` why it cannot be evaluated, ``withdrawn`` why the planner has
    withdrawn it.
    """

    test: str
    expected: str
    called: list[str]
    verdict: Literal["", "holds", "does not hold", "cannot be evaluated"] = ""
    got: str = ""
    reason: str = ""
    withdrawn: str = ""


class Unusable(ValueError):
    """Why an item of a plan is refused."""


@dataclass(frozen=True)
class TargetModule:
    """The file under test, imported as ``name``: the names that it ``defined`` and ``imported`` at its top level.

    ``functions`` are those of all levels, ``asynchronous`` some of them. ``is_open``: it may have more names.
    """

    name: str
    defined: frozenset[str]
    imported: frozenset[str]
    functions: frozenset[str]
    asynchronous: frozenset[str]
    is_open: bool

    @property
    def names(self) -> frozenset[str]:
        return self.defined | self.imported

    @property
    def own_names(self) -> frozenset[str]:
        """Under which the module itself can be used: its last and its first part."""
        return frozenset({self.name.partition(".")[0], self.name.rpartition(".")[2]}) - self.names


def target_module(source: str, name: str) -> TargetModule:
    """Raises `NotPython`."""
    tree = syntax_tree(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    defined, imported = set[str](), set[str]()
    for node in _top_level(tree.body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {each.asname or each.name.partition(".")[0] for each in node.names}
            is_own = isinstance(node, ast.ImportFrom) and (
                node.level > 0 or str(node.module).partition(".")[0] == name.partition(".")[0]
            )
            (defined if is_own else imported).update(names)
        elif isinstance(node, Function | ast.ClassDef):
            defined.add(node.name)
        else:
            defined |= {each.id for each in ast.walk(node) if _is_stored(each)}
    return TargetModule(
        name,
        frozenset(defined - {"*"}),
        frozenset(imported - {"*"}),
        frozenset(each.name for each in functions),
        frozenset(each.name for each in functions if isinstance(each, ast.AsyncFunctionDef)),
        is_open="*" in defined | imported or "__getattr__" in defined or "globals" in source,
    )


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            for name in ("body", "orelse", "finalbody", "handlers"):
                parts = getattr(node, name, [])
                yield from _top_level([each for part in parts for each in getattr(part, "body", [part])])


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def usable_items(
    known: Collection[Json], planned: Collection[object], module: TargetModule, texts: Mapping[str, str], most: int
) -> tuple[list[Json], list[Json]]:
    """The new items as `JudgedItem`, and the refused ones as ``{item, reason}``.

    ``texts``: what may be quoted, by source. At most ``most`` items may be known in the end.
    """
    taken, items, refused = {each["id"] for each in known}, list[Json](), list[Json]()
    for each in planned:
        try:
            item = _read(each)
            if item.id in taken:
                raise Unusable(f"the id {item.id} is taken")
            if len(taken) >= most:
                raise Unusable(f"the budget of {most} items is used up")
            judged = _usable(item, module, texts)
        except Unusable as error:
            refused.append({"item": each, "reason": str(error)})
            continue
        taken.add(judged.id)
        items.append(judged.model_dump())
    return items, refused


def _read(given: object) -> PlanItem:
    try:
        return PlanItem.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"][:2]))
        raise Unusable(": ".join(filter(None, [place, first["msg"]]))) from None


def _usable(item: PlanItem, module: TargetModule, texts: Mapping[str, str]) -> JudgedItem:
    if item.source in QUOTED:
        quote, text = (" ".join(each.split()) for each in (item.quote, texts.get(item.source, "")))
        if len(quote) < MIN_QUOTE_CHARACTERS or quote not in text:
            raise Unusable(f"its quote is not in the {QUOTED[item.source]}")
    test = rendered(item, module, f"test_{slug(item.why)}")
    return JudgedItem(**item.model_dump(), test=test, expected=in_words(item.expect), called=sorted(_called(item)))


def slug(text: str) -> str:
    """``text`` as a part of a name."""
    words = re.sub(r"\W+", "_", text.lower(), flags=re.ASCII).strip("_")
    return words[:50].rstrip("_") or "planned"


def in_words(expect: Mapping[str, Any]) -> str:
    """The expectation for people."""
    match expect:
        case {"raises": name, "match": pattern}:
            return f"raises {name} with {pattern!r}"
        case {"raises": name}:
            return f"raises {name}"
        case {"is": name}:
            return "nan" if str(name).lower() == "nan" else str(IDENTITIES.get(str(name).lower(), name))
        case {"close": number, "within": within}:
            return f"{number} ± {within}"
        case {"nothing_raised": _}:
            return "no exception"
    return str(expect.get("equals", ""))


def rendered(item: PlanItem, module: TargetModule, name: str) -> str:
    """The item as a test function that needs nothing around it. Raises `Unusable`."""
    setup = [_statement(each) for each in item.setup]
    lines = [line for each in setup for line in ast.unparse(each).splitlines()]
    if len(lines) > MAX_SETUP_LINES:
        raise Unusable(f"its setup has {len(lines)} lines, {MAX_SETUP_LINES} at most")
    call = _expression(item.call, "call")
    _use_target(setup, call, module)
    is_async = _needs_loop([*setup, call], module)
    if isinstance(call, ast.Call) and name_of(call) in module.asynchronous:
        call = ast.Await(call)
    check, imports = _check(item, setup, ast.unparse(call), module)
    body = [*lines, *check]
    if is_async:
        body = ["async def scenario():", *(f"    {each}" for each in body), "", "asyncio.run(scenario())"]
        imports += ["import asyncio"]
    imports += _imports("\n".join(body), [*imports], module)
    imports.sort(key=lambda line: (module.name in line, "pytest" in line, line))
    head = [*imports, ""] if imports else []
    return "\n".join([f"def {name}():", *(f"    {each}" if each else "" for each in [*head, *body])]) + "\n"


def _check(item: PlanItem, setup: list[ast.stmt], call: str, module: TargetModule) -> tuple[list[str], list[str]]:
    """The lines from the call on, and what they import besides the module's names."""
    expect = item.expect
    kinds = [each for each in KINDS if each in expect]
    if len(kinds) != 1 or (more := set(expect) - {kinds[0], *SIZES.get(kinds[0], ())}):
        what = ", ".join(map(str, [*kinds, *(sorted(more) if len(kinds) == 1 else [])])) or "nothing"
        raise Unusable(f"expect has {what}; it needs exactly one of {', '.join(KINDS)}")
    run = [f"result = {call}"]
    match kinds[0]:
        case "equals":
            value = _expression(expect["equals"], "expect.equals")
            _independent(value, setup, _expression(item.call, "call"), module)
            return [*run, f"assert result == {ast.unparse(value)}"], []
        case "is":
            name = str(expect["is"]).lower()
            if name == "nan":
                return [*run, "assert math.isnan(result)"], ["import math"]
            if name not in IDENTITIES:
                raise Unusable("expect.is must be true, false, none or nan")
            return [*run, f"assert result is {IDENTITIES[name]}"], []
        case "close":
            near = f"{_number(expect, 'close')}, rel=0, abs={_number(expect, 'within')}"
            return [*run, f"assert result == pytest.approx({near})"], ["import pytest"]
        case "raises":
            return [f"with pytest.raises({_raised(expect)}):", f"    {run[0]}"], ["import pytest"]
    if expect["nothing_raised"] is not True:
        raise Unusable("expect.nothing_raised can only be true")
    return run, []


def _number(expect: Mapping[str, Any], name: str) -> object:
    value: Any = expect.get(name)
    if type(value) not in (int, float) or not isfinite(value) or (name == "within" and value <= 0):
        raise Unusable(f"expect.{name} must be a {'positive ' if name == 'within' else ''}number")
    return value


def _raised(expect: Mapping[str, Any]) -> str:
    name, pattern = str(expect["raises"]), expect.get("match")
    if not re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*", name):
        raise Unusable("expect.raises must be the name of an exception; what its text contains goes into expect.match")
    if pattern is None:
        return name
    try:
        re.compile(str(pattern))
    except re.error as error:
        raise Unusable(f"expect.match is not a pattern: {error}") from None
    return f"{name}, match={str(pattern)!r}"


def _statement(text: str) -> ast.stmt:
    body = _parsed(text, "setup", "exec").body
    if len(body) != 1:
        raise Unusable("each entry of setup must be one statement")
    return body[0]  # type: ignore[no-any-return]


def _expression(value: object, what: str) -> ast.expr:
    text = value if isinstance(value, str) else repr(value)
    return _parsed(text.strip(), what, "eval").body  # type: ignore[no-any-return]


def _parsed(text: str, what: str, mode: Literal["exec", "eval"]) -> Any:  # noqa: ANN401 - either tree
    if len(text) > MAX_CHARACTERS:
        raise Unusable(f"{what} is longer than {MAX_CHARACTERS} characters")
    try:
        return syntax_tree(text, mode)
    except NotPython as error:
        raise Unusable(f"{what} is not Python: {error.message}: {text[:80]}") from None


def _used(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and not _is_stored(each)}


def _bound(node: ast.AST) -> set[str]:
    stored = {each.id for each in ast.walk(node) if _is_stored(each)}
    named = {each.name for each in ast.walk(node) if isinstance(each, Function | ast.ClassDef)}
    imports = [each for each in ast.walk(node) if isinstance(each, ast.Import | ast.ImportFrom)]
    return stored | named | {each.asname or each.name.partition(".")[0] for one in imports for each in one.names}


def _use_target(setup: list[ast.stmt], call: ast.expr, module: TargetModule) -> None:
    """Raise `Unusable` unless the call uses the module's code, directly or through the setup."""
    reached = set(module.defined | module.own_names) | (set(module.imported) if module.is_open else set())
    for node in setup:
        own = [each for each in ast.walk(node) if isinstance(each, ast.Import | ast.ImportFrom)]
        is_imported = any(module.name.partition(".")[0] in ast.unparse(each) for each in own)
        if is_imported or _used(node) & reached:
            reached |= _bound(node)
    if not _used(call) & reached:
        raise Unusable(f"its call does not use {module.name}: {ast.unparse(call)[:80]}")


def _called(item: PlanItem) -> set[str]:
    """The names of all functions that the call calls; of the whole call if it calls none."""
    call = _expression(item.call, "call")
    names = {name_of(each) for each in ast.walk(call) if isinstance(each, ast.Call)} - set(vars(builtins))
    return names - {""} or _used(call) | {each.attr for each in ast.walk(call) if isinstance(each, ast.Attribute)}


def _independent(value: ast.expr, setup: list[ast.stmt], call: ast.expr, module: TargetModule) -> None:
    """Raise `Unusable` if the expected value is computed by what the call calls."""
    calls = [each for each in ast.walk(call) if isinstance(each, ast.Call)]
    names = {name_of(each) for each in calls} & module.functions
    names |= {name_of(call)} if isinstance(call, ast.Call) else set()
    derived = {name for node in setup if _calls(node, names - {""}) for name in _bound(node)}
    is_same = ast.unparse(value) == ast.unparse(call) or "result" in _used(value)
    if is_same or _calls(value, names - set(vars(builtins))) or _used(value) & derived:
        raise Unusable("its expected value is computed by what the call calls")


def _calls(node: ast.AST, names: Collection[str]) -> bool:
    return any(isinstance(each, ast.Call) and name_of(each) in names for each in ast.walk(node))


def _needs_loop(nodes: list[ast.AST], module: TargetModule) -> bool:
    is_awaiting = ast.Await | ast.AsyncWith | ast.AsyncFor
    parts = [part for node in nodes for part in ast.walk(node)]
    has_await = any(isinstance(each, is_awaiting) or getattr(each, "is_async", False) for each in parts)
    return has_await or any(_calls(node, module.asynchronous) for node in nodes)


def _imports(body: str, imports: Collection[str], module: TargetModule) -> list[str]:
    """The lines that import the names in ``body`` from the module. Raises `Unusable` for an unknown one."""
    known = {each.rpartition(" ")[2] for each in imports} | set(vars(builtins))
    wanted = sorted(_free_names(body) - known)
    own = [each for each in wanted if each in module.names or (module.is_open and each not in module.own_names)]
    lines = [f"from {module.name} import {', '.join(own)}"] if own else []
    for name in (each for each in wanted if each not in own):
        package, _, last = module.name.rpartition(".")
        if name not in module.own_names:
            hint = " (a text needs quotes of its own)" if f"== {name}" in body else ""
            raise Unusable(f"{name} is neither in its setup nor in {module.name}{hint}")
        lines.append(f"from {package} import {last}" if name == last and package else f"import {module.name}")
    return lines


@lru_cache(maxsize=64)
def _free_names(body: str) -> frozenset[str]:
    """The names that ``body``, as that of a function, takes from outside."""
    source = "def item():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    try:
        compile(source, "<item>", "exec", dont_inherit=True)
        top = symtable.symtable(source, "<item>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unusable(f"it is not Python: {error}") from None
    return frozenset(_outer(top))


def _outer(table: symtable.SymbolTable) -> Iterator[str]:
    for child in table.get_children():
        yield from (each.get_name() for each in child.get_symbols() if each.is_global() and each.is_referenced())
        yield from _outer(child)


def is_suspected(item: Mapping[str, Any]) -> bool:
    """Whether the code may be wrong; a withdrawn item counts if somebody else says it."""
    stays = not item.get("withdrawn") or item["source"] in QUOTED
    return item.get("verdict") == FAILS and item["source"] != OBSERVED and stays


def is_open(item: Mapping[str, Any]) -> bool:
    """Whether a developer's test has to say what the item says: it holds, or only such a test can tell."""
    return item.get("verdict", "") in ("", HOLDS, UNKNOWN) and not item.get("withdrawn")
