"""What a flow's templates and conditions contain, read without evaluating them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import nodes

    from codex_multi_role.catalog.template_sandbox import TemplateSandbox

_MARKS = ("{{", "{%", "{#")


def has_expressions(value: object) -> bool:
    """Whether rendering could change ``value``, including items of lists and mappings."""
    if isinstance(value, str):
        return any(mark in value for mark in _MARKS)
    if isinstance(value, Mapping):
        return any(has_expressions(item) for item in value.values())
    return isinstance(value, list | tuple) and any(has_expressions(item) for item in value)


def whole_expression(text: str) -> str | None:
    """``a.b`` for a text that is one whole ``{{ a.b }}``, which keeps its type; None for any other."""
    return sandbox().whole_expression(text)


@lru_cache(maxsize=256)
def parse_expression(expression: str) -> nodes.Expr:
    """The syntax tree of an expression without braces. Raises ``jinja2.TemplateSyntaxError``."""
    from jinja2.parser import Parser

    return Parser(sandbox(), expression, state="variable").parse_expression()


@lru_cache(maxsize=256)
def parse_template(text: str) -> nodes.Template:
    """The syntax tree of a text with expressions in it. Raises ``jinja2.TemplateSyntaxError``."""
    return sandbox().parse(text)


def name_or_constant(node: nodes.Node) -> object:
    """A constant's value; the parts of a name, the same for ``steps.plan`` and ``steps["plan"]``; otherwise None."""
    from jinja2 import nodes

    match node:
        case nodes.Const(value=value):
            return value
        case nodes.Name(name=name):
            return (name,)
        case nodes.Getattr(node=owner, attr=key) | nodes.Getitem(node=owner, arg=nodes.Const(value=key)):
            parts = name_or_constant(owner)
            return (*parts, key) if isinstance(parts, tuple) else None
    return None


def attribute_paths(syntax: nodes.Template) -> Iterator[tuple[str, ...]]:
    """``(name, attribute, …)`` of every ``name.attribute``, however deep, and ``name["attribute"]``.

    Called ones, such as ``name.items()``, are methods.
    """
    from jinja2 import nodes

    methods = {id(call.node) for call in syntax.find_all(nodes.Call)}
    for taken in syntax.find_all((nodes.Getattr, nodes.Getitem)):
        path = name_or_constant(taken) if id(taken) not in methods else None
        if isinstance(path, tuple) and all(isinstance(part, str) for part in path):
            yield path


def local_names(syntax: nodes.Template) -> set[str]:
    """The names that the template itself sets, such as the variable of a loop."""
    from jinja2 import nodes

    return {name.name for name in syntax.find_all(nodes.Name) if name.ctx != "load"}


@lru_cache(maxsize=1)
def sandbox() -> TemplateSandbox:
    """The environment of all templates, created when the first one is read."""
    from codex_multi_role.catalog.template_sandbox import TemplateSandbox

    return TemplateSandbox()
