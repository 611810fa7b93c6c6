"""YAML text to JSON-shaped data: bounded, without tags that create objects, without duplicate keys.

libyaml's composer recurses on the C stack and does not detect duplicate keys, so the events are checked first:
iteratively, with a limit on nesting and on the size of the text with every alias expanded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.constructor import ConstructorError, SafeConstructor

from codex_multi_role.reading import former_keys

MAX_DEPTH = 64
MAX_EXPANDED_CHARACTERS = 4 * 1024 * 1024
_LARGEST_INTEGER = 2**63 - 1  # what TOML, and so a Codex setting, can hold
_LONGEST_NUMBER = 400  # characters; base 60 (1:30:00, a YAML 1.1 number) takes quadratic time
_TAG = "tag:yaml.org,2002:"
_JSON_TAGS = ("null", "bool", "int", "float", "str", "seq", "map")


def parse_yaml(text: str, rewrite: Callable[[yaml.Node | None], object] = lambda _: None) -> object:
    """The one document of ``text`` as dict, list, str, int, float, bool or None. Raises ``yaml.YAMLError``.

    ``rewrite``: changes its nodes before they are read.
    """
    _check_events(text)
    loader = _JsonShapedLoader(text)
    try:
        node = loader.get_single_node()
        rewrite(node)
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def compose_yaml(text: str) -> yaml.Node | None:
    """The nodes of ``text``, each with its place; None for an empty text. Raises ``yaml.YAMLError``.

    The steps of a flow have the present keys.
    """
    _check_events(text)
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
    former_keys.rewrite(node)
    return node


class _JsonShapedLoader(yaml.CSafeLoader):
    """Safe loading without timestamps, sets and binaries: a date stays text."""

    yaml_constructors = {  # noqa: RUF012 - PyYAML reads its tables from the class
        tag: SafeConstructor.yaml_constructors[tag] for tag in (None, *(_TAG + name for name in _JSON_TAGS))
    }
    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_TAG}timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def _problem(text: str, place: yaml.Event | yaml.Node) -> ConstructorError:
    return ConstructorError(None, None, text, place.start_mark)  # type: ignore[arg-type]  # libyaml's marks are as good


def _checked(construct: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """PyYAML's scalar constructors raise bare ValueErrors and KeyErrors for nonsense under an explicit tag."""

    def constructed(loader: _JsonShapedLoader, node: yaml.ScalarNode) -> object:
        if len(node.value) > _LONGEST_NUMBER:
            raise _problem("a number that JSON and TOML cannot hold", node)
        try:
            value = construct(loader, node)
        except (ValueError, LookupError):
            raise _problem(f"not of type {node.tag.removeprefix(_TAG)}", node) from None
        if not (math.isfinite(value) if isinstance(value, float) else abs(value) <= _LARGEST_INTEGER):
            raise _problem("a number that JSON and TOML cannot hold", node)
        return value

    return constructed


for _name in ("bool", "int", "float"):
    _JsonShapedLoader.add_constructor(_TAG + _name, _checked(SafeConstructor.yaml_constructors[_TAG + _name]))


@dataclass
class _OpenNode:
    """A mapping or sequence that is still open. ``size`` in characters, ``height`` in levels below it."""

    anchor: str | None
    keys: set[str] | None
    size: int = 1
    height: int = 1
    children: int = 0
    key_next: bool = True


def _check_events(text: str) -> None:
    opened: list[_OpenNode] = []
    anchors: dict[str, tuple[int, int]] = {}
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append(_OpenNode(event.anchor, set() if isinstance(event, yaml.MappingStartEvent) else None))
            _check_bounds(opened, (0, 0), event)
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            closed = opened.pop()
            anchor, weight = closed.anchor, (closed.size, closed.height)
        elif isinstance(event, yaml.AliasEvent):
            _check_recursion(opened, event)
            anchor, weight = None, anchors.get(event.anchor or "", (1, 0))
        elif isinstance(event, yaml.ScalarEvent):
            anchor, weight = event.anchor, (1 + len(event.value), 0)
            _check_duplicate(opened, event)
        else:
            continue
        if anchor is not None:
            anchors[anchor] = weight
        if opened:
            _add(opened[-1], weight)
            _check_bounds(opened, weight, event)


def _add(parent: _OpenNode, weight: tuple[int, int]) -> None:
    parent.size += weight[0]
    parent.height = max(parent.height, weight[1] + 1)
    parent.key_next = not parent.key_next


def _check_bounds(opened: list[_OpenNode], weight: tuple[int, int], event: yaml.Event) -> None:
    if len(opened) + weight[1] > MAX_DEPTH:
        raise _problem(f"nested more than {MAX_DEPTH} levels deep", event)
    if opened[-1].size > MAX_EXPANDED_CHARACTERS:
        raise _problem("its aliases (*) make the file too large", event)


def _check_recursion(opened: list[_OpenNode], event: yaml.AliasEvent) -> None:
    if any(container.anchor == event.anchor for container in opened):
        raise _problem(f"*{event.anchor} contains itself", event)


def _check_duplicate(opened: list[_OpenNode], event: yaml.ScalarEvent) -> None:
    if not opened or opened[-1].keys is None or not opened[-1].key_next:
        return
    if event.value in opened[-1].keys:
        raise _problem(f'duplicate key "{event.value}"', event)
    opened[-1].keys.add(event.value)
