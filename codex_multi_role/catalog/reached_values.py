"""Which parts of which values an expression reaches, as paths of names and keys."""

from __future__ import annotations

from collections.abc import Mapping
from types import EllipsisType, MappingProxyType
from typing import Final, NamedTuple

from jinja2 import nodes

from codex_multi_role.catalog.flow_expressions import parse_expression, whole_expression
from codex_multi_role.catalog.value_uses import FEWER_ELEMENTS, GUARDS, ONE_ELEMENT, SAME_ELEMENTS, Numbers

ITEM: Final = ...
"""The part of a path that stands for every element of a list."""
Path = tuple[str | int | EllipsisType, ...]


class ReachedValue(NamedTuple):
    """A value that an expression reaches. ``is_certain``: whether what is read of it is always read."""

    path: Path
    is_certain: bool = True

    def at(self, *parts: str | int | EllipsisType) -> ReachedValue:
        return self._replace(path=(*self.path, *parts))


UNKNOWN = ReachedValue((), is_certain=False)


class TemplateScope(NamedTuple):
    """``names``: those that stand for a path; any other name is the start of one. ``numbers``: the names of numbers."""

    names: Mapping[str, ReachedValue] = MappingProxyType({})
    is_certain: bool = True
    numbers: Numbers = frozenset()

    def unsure(self) -> TemplateScope:
        """The scope of a part that may not be evaluated."""
        names = {name: reached._replace(is_certain=False) for name, reached in self.names.items()}
        return self._replace(names=names, is_certain=False)

    def named(self, target: nodes.Node, reached: ReachedValue | None) -> TemplateScope:
        """The scope with what a loop or an assignment calls ``target``."""
        if isinstance(target, nodes.Name):
            return self._replace(names={**self.names, target.name: reached or UNKNOWN})
        return self._replace(names={**self.names, **{each.name: UNKNOWN for each in target.find_all(nodes.Name)}})


def elements_of(template: object, scope: TemplateScope) -> ReachedValue | None:
    """What stands for every element of the list that ``template``, one whole ``{{ … }}``, gives; None if unknown."""
    whole = whole_expression(template) if isinstance(template, str) else None
    return None if whole is None else element_of(parse_expression(whole), scope)


def sized_by(template: object, scope: TemplateScope) -> bool:
    """Whether the list that ``template`` gives has as many elements as the value that it reads."""
    whole = whole_expression(template) if isinstance(template, str) else None
    part = None if whole is None else parse_expression(whole)
    while isinstance(part, nodes.Filter) and part.name in ("list", "sort", "reverse", *GUARDS):
        part = part.node
    return part is not None and is_plain(part) and reached_by(part, scope) is not None


def path_text(path: Path) -> str:
    """``tasks[].title``."""
    parts = ("[]" if part is ITEM else f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def is_plain(part: nodes.Node) -> bool:
    """Whether it is a name and constant keys, so that its path says all that it reads."""
    match part:
        case nodes.Name():
            return True
        case nodes.Getattr(node=owner) | nodes.Getitem(node=owner, arg=nodes.Const(value=str() | int())):
            return is_plain(owner)
    return False


def reached_by(part: nodes.Node, scope: TemplateScope) -> ReachedValue | None:
    """The path of a value; None if it is not a part of another one."""
    match part:
        case nodes.Name(name=name):
            return scope.names.get(name, ReachedValue((name,), scope.is_certain))
        case nodes.Getattr(node=owner, attr=key):
            return _below(reached_by(owner, scope), key)
        case nodes.Getitem(node=owner, arg=nodes.Const(value=str() | int() as key)):
            if isinstance(key, str):
                return _below(reached_by(owner, scope), key)
            element = element_of(owner, scope)
            return element and element._replace(path=(*element.path[:-1], key), is_certain=element.is_certain)
        case nodes.Getitem(node=owner, arg=key) if not isinstance(key, nodes.Slice):
            element = element_of(owner, scope)
            return element and element._replace(is_certain=False)
        case nodes.Filter(node=nodes.Expr() as filtered, name=name) if name in ONE_ELEMENT:
            element = element_of(filtered, scope)
            return element and element._replace(is_certain=False)
    return None


def _below(owner: ReachedValue | None, key: str) -> ReachedValue | None:
    return owner.at(key) if owner is not None and owner.path else None


def element_of(part: nodes.Node, scope: TemplateScope) -> ReachedValue | None:
    """What stands for every element of a list; None if they are not parts of another value."""
    match part:
        case nodes.Filter(node=nodes.Expr() as filtered, name=name) if name in SAME_ELEMENTS:
            return element_of(filtered, scope)
        case nodes.Filter(node=nodes.Expr() as filtered, name=name) if name in FEWER_ELEMENTS:
            element = element_of(filtered, scope)
            return element and element._replace(is_certain=False)
        case nodes.Filter(node=nodes.Expr() as filtered, name="map"):
            element, keys = element_of(filtered, scope), attribute_of(part)
            return element.at(*keys) if element is not None and keys else None
        case nodes.Getitem(node=owner, arg=nodes.Slice()):
            element = element_of(owner, scope)
            return element and element._replace(is_certain=False)
    reached = reached_by(part, scope)
    return reached.at(ITEM) if reached is not None and reached.path else None


def attribute_of(part: nodes.Filter) -> Path:
    """The keys of the attribute that a filter takes of every element."""
    named = [pair.value for pair in part.kwargs if pair.key == "attribute"]
    given = [*named, *(part.args[:1] if part.name in FEWER_ELEMENTS else [])]
    match given:
        case [nodes.Const(value=str() as text), *_]:
            return tuple(int(key) if key.isdigit() else key for key in text.split("."))
    return ()
