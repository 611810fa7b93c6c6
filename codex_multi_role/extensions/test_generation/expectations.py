"""What tests expect, by value, and which answers of a developer change what a failing test expects."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from codex_multi_role.checks.junit_report import MAX_MESSAGE_CHARACTERS
from codex_multi_role.extensions.test_generation.plan_items import HOLDS, IDENTITIES, is_open, is_suspected
from codex_multi_role.extensions.test_generation.removed_tests import alone, rows_of
from codex_multi_role.extensions.test_generation.state_machine import MeasuredTests
from codex_multi_role.extensions.test_generation.test_files import Texts, names_in, rows_in, texts_of
from codex_multi_role.extensions.test_generation.tests_source import (
    CHECKING_CALLS,
    Function,
    functions_in,
    literal,
    name_of,
)
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.python_source import NotPython, syntax_tree

MAX_NODES, MAX_CALLS = 5_000, 200
"""Bounds of an expression with its values, and of the calls of a test, because a model wrote them."""
SAYING = frozenset({"approx", "raises", "isinstance", "Decimal", "Fraction", "set", "frozenset", "tuple", "list"})
"""Calls whose arguments state what a test expects."""
DECIDING = frozenset({"Is", "Eq", "raises", "true"})
STRICTNESS = {"Is": 3, "Eq": 2, "raises": 2, "NotEq": 0, "IsNot": 0, "NotIn": 0}
DISABLING = re.compile(
    r"\b(skip\w*|importorskip|xfail|expectedFailure|suppress|__test__|return|raise|exit)\b"
    r"|^\d+ (if|for|while|try|match|with .*raises)\b|^(del )?test\w*( =|$)"
)
HARMLESS = re.compile(r"""print\(|sys\.path\.|[bru]*['"]""")
SETS_UP = re.compile(r"def setup|autouse", re.IGNORECASE)
Values = dict[str, ast.expr]
Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Expectation:
    """What is ``stated`` about the ``subject`` by ``operator``, after ``context``: all code that runs before it.

    ``guards`` are the parts of the context that can keep the check from failing.
    """

    text: str = field(compare=False)
    operator: str
    nodes: Sequence[ast.expr] = field(compare=False)
    stated: Sequence[str]
    subject: Sequence[str]
    context: Sequence[str]
    guards: Sequence[str]

    def strictness(self, expected: object) -> int:
        """How strictly ``expected`` is stated: 3 identical, 2 equal or raised, 1 in part or as a truth, 0 not."""
        strictness = STRICTNESS.get(self.operator, 1)
        if any(_is(_unwrapped(node), expected) for node in self.nodes):
            return strictness
        parts = (part for node in self.nodes for part in _outside_of_calls(node))
        return min(strictness, 1) if any(_is(part, expected) for part in parts) else 0


@dataclass(frozen=True)
class PlannedCheck:
    """What an item of the plan says, as the ``check`` of its own test; ``value`` is what it expects.

    ``case`` is a check of its call after its setup.
    """

    item: Json
    check: Expectation | None
    case: Expectation | None
    value: Any

    def is_in(self, check: Expectation) -> bool:
        """Whether ``check`` is about what the item calls."""
        text = "\n".join([*check.subject, *check.stated, *check.context])
        return any(re.search(rf"\b{re.escape(name)}\b", text) for name in self.item["called"])

    def strictness(self, check: Expectation) -> int:
        """How strictly ``check`` states what the item expects."""
        within = self.item["expect"].get("within", 0)
        values = {*self.check.stated} - {*self.check.subject} if self.check else set()
        is_same = bool(values) and values <= {*check.stated}
        stated = [each for node in check.nodes for each in literal(_unwrapped(node)) if isinstance(each, int | float)]
        is_near = within and any(abs(each - self.value) <= within for each in stated)
        texts = " ".join([*check.stated, *check.subject])
        is_nan = self.value == "nan" and re.search(r"(?i)is_?nan\(|\bnan\b(?![(.])", texts)
        found = check.strictness(self.value)
        return max(found, min(2, STRICTNESS.get(check.operator, 1))) if is_same or is_near or is_nan else found

    def states(self, check: Expectation) -> bool:
        return self.is_in(check) and self.strictness(check) > 0

    def is_same_case(self, check: Expectation) -> bool:
        """Whether ``check`` is about the same call, after the same set-up."""
        known = filter(None, (self.check, self.case))
        return any(own.subject == check.subject and {*own.context} <= {*check.context} for own in known)


def planned(item: Json) -> PlannedCheck:
    expect = item["expect"]
    (checks,) = checks_in(item["test"]).values() or ([],)
    is_value = "\n    result = " in item["test"]
    (cases,) = checks_in(f"{item['test']}    assert result is None\n").values() if is_value else (checks,)
    name = str(expect.get("is", "")).lower()
    value = expect.get("equals", expect.get("raises", expect.get("close", name)))
    last, case = (each[-1] if each else None for each in (checks, cases))
    return PlannedCheck(item, last, case, IDENTITIES.get(name, value))


def changed_expectations(best: MeasuredTests, after: Texts, plan: Sequence[Json], target: str) -> Iterator[Json]:
    """Failing tests of ``best`` that lost a check in ``after``: ``{test, assertion, id, expected}``.

    If ``best`` crashed, only checks that state what the plan expects count. A test that failed by itself may be
    corrected, except its operators, literals and what disables it. Suspected bugs need no test.
    """
    files, items = texts_of(best.files), [planned(each) for each in plan]
    before, now = ([each for text in all_.values() for each in checks_in(text).items()] for all_ in (files, after))
    messages = {
        name: each["message"] for each in best.failures for path in files for name in names_in(path, [each["test"]])
    }
    for test, checks in before:
        if not best.crashed and test not in messages and best.failed <= len(best.failures):
            continue
        is_strict = not best.crashed and not _failed_by_itself(messages.get(test, ""), target)
        own = [each for name, new in now if name == test or name not in dict(before) for each in new]
        every = [each for _, new in now for each in new]
        for check in checks:
            said = [each for each in items if each.states(check)]
            if any(is_suspected(each.item) for each in said):
                continue
            is_kept = any(check == each if is_strict else _is_similar(check, each) for each in own)
            closer = (_is_closer(each, check, checks, item, is_strict) for each in every for item in items)
            if (said or not best.crashed) and not is_kept and not any(closer):
                same = [each for each in items if each.is_same_case(check)]
                item = next((each.item for each in [*said, *same]), {})
                known = {name: item.get(name) for name in ("id", "expected")}
                yield {"test": test, "assertion": check.text, **known}
                break


def asserting(source: str, item: Json) -> list[str]:
    """The tests that state what ``item`` expects of what it calls; those of the same call if there are any."""
    own = planned(item)
    if "nothing_raised" in item["expect"]:
        return _using(source, item)
    stating = {name: [*filter(own.states, checks)] for name, checks in checks_in(source).items()}
    exact = [name for name, checks in stating.items() if any(map(own.is_same_case, checks))]
    return exact or [name for name, checks in stating.items() if checks]


def tests_asserting(texts: Texts, tests: Collection[str], item: Json) -> list[str]:
    """Those of ``tests``, by pytest's names, that `asserting` finds in ``texts``; each row of parameters by itself."""
    rows = [(text, test, row) for path, text in texts.items() for test in tests for row in rows_in(path, [test])]
    return [test for text, test, row in rows if row.partition("[")[0] in asserting(alone(text, row), item)]


def untested(sources: Collection[str], plan: Sequence[Json]) -> list[str]:
    """The ids of items that no test is about; of those that cannot be evaluated, that no test states."""
    searches = ((item, _using if item["verdict"] == HOLDS else asserting) for item in filter(is_open, plan))
    return [item["id"] for item, search in searches if not any(search(text, item) for text in sources)]


def contrary(source: str, plan: Sequence[Json]) -> dict[str, str]:
    """By passing test, or row of its parameters, the id of the suspected bug that it takes for right."""

    def is_about(text: str, test: str) -> bool:
        return any(item.is_same_case(each) and each.operator in DECIDING for each in checks_in(text)[test])

    found = dict[str, str]()
    for item in map(planned, filter(is_suspected, plan)):
        rows = [(row, name) for name in checks_in(source) if is_about(source, name) for row in rows_of(source, name)]
        found |= {row: item.item["id"] for row, name in rows if is_about(alone(source, row), name)}
    return found


def _using(source: str, item: Json) -> list[str]:
    """The tests with one of the names that the item calls."""
    return [each.name for each in functions_in(source) if {*item["called"]} & _words(_text(each.node))]


def _words(text: str) -> set[str]:
    return {*re.findall(r"\w+", text)}


def _failed_by_itself(message: str, target: str) -> bool:
    """Whether the test could not do its work: it compared nothing, and the target raised nothing."""
    places = re.findall(r"^(\S+?):\d+: ?(?:in )?(\S*)$", message, re.MULTILINE)
    is_known = places and len(message) < MAX_MESSAGE_CHARACTERS and target not in dict(places)
    return bool(is_known) and places[-1][1] not in ("AssertionError", "Failed")


def _is_similar(before: Expectation, now: Expectation) -> bool:
    literals, still = ({_text(each) for each in check.nodes if literal(each)} for check in (before, now))
    is_same = before.operator == now.operator and before.guards == now.guards
    return is_same and (before.stated == now.stated if before.operator == "raises" else literals <= still)


def _is_closer(
    now: Expectation, before: Expectation, others: Sequence[Expectation], item: PlannedCheck, is_strict: bool
) -> bool:
    """Whether ``now`` states what the plan's item expects, for the planned input.

    It must state it more strictly than ``before``, or as strictly if it is new. Of ``others``, those before, only one
    about the same can replace it.
    """
    strictness, was_there = item.strictness(now), now in others
    if now.operator not in DECIDING or not strictness or strictness < item.strictness(before) + was_there:
        return False
    if was_there and now.subject != before.subject:
        return False
    if not is_strict:
        return now.guards == before.guards and item.is_in(now) and item.is_in(before)
    is_one_function = bool({*item.item["called"]} & _words(" ".join(before.subject)))
    return is_one_function and now.context == before.context and item.is_same_case(now)


@lru_cache(maxsize=16)
def checks_in(source: str) -> Mapping[str, Sequence[Expectation]]:
    """The checks of each test, by its name as in `functions_in`; none if the source cannot be parsed.

    Variables, constants and rows are replaced by their values, so that it does not matter where a value is written.
    """
    try:
        return dict(_tests(syntax_tree(source).body, "", {}, []))
    except (NotPython, RecursionError):
        return {}


def _tests(
    body: Sequence[ast.stmt], prefix: str, values: Values, context: list[str]
) -> Iterator[tuple[str, list[Expectation]]]:
    """Functions other than tests are known by what they do, so that their changes are seen."""
    functions = [node for node in body if isinstance(node, Function)]
    helpers = [node for node in functions if not node.name.startswith("test")]
    others = [node for node in body if not isinstance(node, Function | ast.ClassDef)]
    list(_checks(others, values, context))
    list(_checks([*helpers, *helpers], values, context))  # they may call each other
    if prefix:  # read as attributes of the object
        context += [text for node in [*others, *helpers] if not HARMLESS.match(text := _text(node))]
    context += [_text(values[node.name]) for node in helpers if SETS_UP.search(_text(node))]
    for node in (each for each in body if isinstance(each, Function | ast.ClassDef) and each not in helpers):
        own = [*context, *(_text(each) for each in node.decorator_list if not _rows(each, values))]
        if isinstance(node, ast.ClassDef):
            yield from _tests(node.body, f"{prefix}{node.name}::", {**values}, own)
        else:
            own += [_text(values[each.arg]) for each in node.args.args if each.arg in values]
            calls = [values]
            for rows in filter(None, (_rows(each, values) for each in node.decorator_list)):
                calls = [{**call, **row} for call in calls for row in rows][:MAX_CALLS]
            yield f"{prefix}{node.name}", [each for call in calls for each in _checks(node.body, {**call}, [*own])]


def _rows(decorator: ast.expr, values: Values) -> list[Values]:
    """The parameters of each call of a test, without skipped ones; none if it is another decorator."""
    if not isinstance(decorator, ast.Call) or name_of(decorator) != "parametrize" or len(decorator.args) < 2:
        return []
    names, rows = literal(decorator.args[0]), getattr(_resolved(decorator.args[1], values), "elts", [])
    parts = (name for each in names for name in (each.split(",") if isinstance(each, str) else each))
    targets = [ast.Name(name.strip()) for name in parts]
    target = targets[0] if len(targets) == 1 else ast.Tuple([*targets])
    return [_bound(target, row) for row in rows[:MAX_CALLS] if not DISABLING.search(_text(row))]


def _checks(body: Sequence[ast.stmt], values: Values, context: list[str]) -> Iterator[Expectation]:
    for node in body:
        text, before = _text(node), {**values}
        for each in [] if isinstance(node, Function) else ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                values.pop(each.id, None)
        whole = _resolved(node, before if isinstance(node, ast.Assign) else values)
        match whole:
            case ast.ImportFrom(names=names):
                module = "." * whole.level + (whole.module or "")
                values |= {each.asname or each.name: ast.Name(f"{module}.{each.name}", ast.Load()) for each in names}
            case ast.Import(names=names):
                values |= {each.asname: ast.Name(each.name, ast.Load()) for each in names if each.asname}
            case ast.Assign(targets=[target], value=value) if not DISABLING.search(text) and _bound(target, value):
                values |= _bound(target, value)
            case ast.Assert(test=test) if any(isinstance(each, ast.Name | ast.Call) for each in ast.walk(test)):
                yield _asserted(text, test, context)
            case ast.Expr(value=ast.Call() as call) if _is_checking(call):
                yield _check(text, "call", [call], [call.func], context)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                whole.name = ""
                values[name] = ast.Name(f"<{hash(_text(whole))}>", ast.Load())
            case _ if not HARMLESS.match(text):
                yield from _block(whole, values, context)
                context.append(_text(whole))


def _block(node: ast.stmt, values: Values, context: list[str]) -> Iterator[Expectation]:
    """The checks of a compound statement; its first line is part of their context."""
    header, body = _text(node).partition("\n")[0], getattr(node, "body", [])
    for item in getattr(node, "items", []):
        call = item.context_expr
        if _is_checking(call):
            subject = [getattr(each, "value", each) for each in body]
            yield _check(header, "raises", [*call.args, *(each.value for each in call.keywords)], subject, context)
        values |= _bound(item.optional_vars, call)
    branches = [body, *(getattr(node, name, []) for name in ("orelse", "finalbody"))]
    branches += [each.body for name in ("handlers", "cases") for each in getattr(node, name, [])]
    for number, branch in enumerate(branches):
        yield from _checks(branch, values, [*context, f"{number} {header}"])


def _asserted(text: str, test: ast.expr, context: list[str]) -> Expectation:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        operator, sides = type(test.ops[0]).__name__, [test.left, *test.comparators]
        stated = sorted(sides, key=_text) if operator in ("Eq", "NotEq", "Is", "IsNot") else sides
        return _check(text, operator, stated, [each for each in stated if not literal(_unwrapped(each))], context)
    subject = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    return _check(text, "true", [ast.Constant(subject is test)], [subject], context)


def _check(
    text: str, operator: str, nodes: list[ast.expr], subject: Sequence[ast.AST], context: list[str]
) -> Expectation:
    stated, about = (tuple(map(_text, each)) for each in (nodes, subject))
    guards = tuple(each for each in context if DISABLING.search(each))
    return Expectation(text, operator, nodes, stated, about, tuple(context), guards)


def _is_checking(call: ast.AST) -> bool:
    """Whether a call checks something; functions of the same file may do so."""
    name = name_of(call) if isinstance(call, ast.Call) else ""
    return name in CHECKING_CALLS - {"xfail"} or name.startswith(("assert", "<"))


class _Values(ast.NodeTransformer):
    """Replaces names by their values, as long as the result is not too large."""

    def __init__(self, values: Values) -> None:
        self._values, self._left = values, MAX_NODES

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._values.get(node.id, node) if isinstance(node.ctx, ast.Load) else node
        self._left -= sum(1 for _ in ast.walk(value))
        return value if self._left > 0 else node


def _resolved(node: Node, values: Values) -> Node:
    resolved: Node = _Values(values).visit(deepcopy(node))
    return resolved


def _bound(target: ast.expr | None, value: ast.expr) -> Values:
    """The names in ``target`` with their values, if these can be told apart."""
    parts = value.args if isinstance(value, ast.Call) and name_of(value) == "param" else getattr(value, "elts", [])
    if isinstance(target, ast.Name):
        return {target.id: parts[0] if isinstance(value, ast.Call) and parts else value}
    pairs = zip(getattr(target, "elts", []), parts, strict=False)
    return {each.id: part for each, part in pairs if isinstance(each, ast.Name)}


def _unwrapped(node: ast.expr) -> ast.expr:
    match node:
        case ast.Call(args=[argument], keywords=[]) if name_of(node) in SAYING:
            return argument
    return node


def _outside_of_calls(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes except those of calls of the code under test: not the 0 of ``sign(0) == 1``."""
    if not isinstance(node, ast.Call) or name_of(node) in SAYING or name_of(node).startswith(("assert", "<")):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _outside_of_calls(child)


def _is(node: ast.AST, expected: object) -> bool:
    if isinstance(node, ast.Name | ast.Attribute):
        return isinstance(expected, str) and name_of(node) == expected.split("(")[0].rpartition(".")[2]
    wanted = [expected, *literal(_parsed(expected) if isinstance(expected, str) else None)]
    return any((type(each) is bool, each) == (type(value) is bool, value) for each in wanted for value in literal(node))


def _text(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except ValueError:  # before Python 3.12, a value with a backslash fits into no f-string
        return ast.dump(node)


def _parsed(text: str) -> ast.expr | None:
    try:
        return syntax_tree(text.strip(), "eval").body
    except NotPython:
        return None
