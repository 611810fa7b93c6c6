"""What a flow's templates and conditions contain, read without evaluating them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, takewhile
from typing import TYPE_CHECKING

from codex_multi_role.host.spelling import texts_in

if TYPE_CHECKING:
    from jinja2 import nodes

    from codex_multi_role.catalog.template_sandbox import TemplateSandbox

_MARKS = ("{{", "{%", "{#")


def has_expressions(value: object) -> bool:
    """Whether rendering could change ``value``, including items of lists and mappings."""
    return any(mark in text for text, _ in texts_in(value) for mark in _MARKS)


@lru_cache(maxsize=1024)
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


def written(part: nodes.Node) -> str:
    """An expression as messages show it."""
    from jinja2 import nodes

    match part:
        case nodes.List(items=items) | nodes.Tuple(items=items):
            return f"[{', '.join(map(written, items))}]"
        case nodes.Filter(node=nodes.Expr() as filtered, name=name):
            return f"{written(filtered)} | {name}"
    named = name_or_constant(part)
    return ".".join(map(str, named)) if isinstance(named, tuple) else "…" if named is None else repr(named)


@lru_cache(maxsize=1024)
def paths_of(text: str) -> tuple[tuple[str, ...], ...]:
    """``(name, attribute, …)`` of all that a template reads, as far as it names them, without methods that it calls."""
    return tuple(_paths(parse_template(text)))


def _paths(part: nodes.Node) -> Iterator[tuple[str, ...]]:
    from jinja2 import nodes

    inner = part.iter_child_nodes()
    match part:
        case nodes.Name(ctx="store" | "param"):
            return
        case nodes.Call(node=nodes.Getattr(node=owner) | nodes.Getitem(node=owner)):
            inner = chain([owner], part.iter_child_nodes(exclude=("node",)))
        case nodes.Name() | nodes.Getattr() | nodes.Getitem() if isinstance(path := name_or_constant(part), tuple):
            yield tuple(takewhile(lambda each: isinstance(each, str), path))
            return
    for each in inner:
        yield from _paths(each)


@lru_cache(maxsize=1024)
def shown_whole(text: str) -> frozenset[object]:
    """The names whose whole values a template always shows: ``("inputs", "task")`` for ``{{ inputs.task }}``."""
    from jinja2 import nodes

    outputs = (each for each in parse_template(text).body if isinstance(each, nodes.Output))
    found = (name_or_constant(part) for each in outputs for part in each.nodes)
    return frozenset(each for each in found if isinstance(each, tuple))


def local_names(syntax: nodes.Template) -> set[str]:
    """The names that the template itself sets, such as the variable of a loop."""
    from jinja2 import nodes

    return {name.name for name in syntax.find_all(nodes.Name) if name.ctx != "load"}


@lru_cache(maxsize=1)
def sandbox() -> TemplateSandbox:
    """The environment of all templates, created when the first one is read."""
    from codex_multi_role.catalog.template_sandbox import TemplateSandbox

    return TemplateSandbox()
