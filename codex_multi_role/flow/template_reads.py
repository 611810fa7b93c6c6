"""What a template certainly reads of a result: in every evaluation that can make it.

What it reads of the elements of a list is certain if it reads it of each element that it walks through, however many
there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from codex_multi_role.catalog.explorations import ITEM, Exploration, NotedPath, Path, StepName, ValueUse
from codex_multi_role.catalog.unknown_values import Element

TAKE_NULL = frozenset({ValueUse.PASSED, ValueUse.DECIDED})


class Source(NamedTuple):
    """Whose fields paths name. ``role``: the one that answers in the ``step``; empty if any. ``name``: in templates."""

    step: StepName
    role: str = ""
    name: str = ""

    def includes(self, other: object) -> bool:
        return (
            isinstance(other, Source) and other.step == self.step and (not self.role or other.role in ("", self.role))
        )


class Wanted(NamedTuple):
    """A source, and the ``states`` of steps when it is read: what the engine says of each, one of which is true."""

    source: Source
    states: Mapping[StepName, Sequence[Mapping[str, Any]]] = {}

    def can_have(self, exploration: Exploration) -> bool:
        """Whether the decisions by what the engine says agree with one of the states of each step."""
        made = {name: rule for name, rule in exploration.rules.items() if rule.of in self.states}
        for step in {rule.of for rule in made.values()}:
            decided = [(rule.value, exploration.made[name]) for name, rule in made.items() if rule.of == step]
            if not any(
                all(_agrees(value, state, is_true) for value, is_true in decided) for state in self.states[step]
            ):
                return False
        return True


def _agrees(value: Any, state: Mapping[str, Any], is_true: bool) -> bool:  # noqa: ANN401 - a function of the state
    try:
        return bool(value(state)) == is_true
    except Exception:  # nothing is known of that
        return True


class Certain(NamedTuple):
    """What is certainly ``read``, and what is ``missed`` of elements that are walked through.

    Each is a path, and whether null will not do there.
    """

    read: frozenset[tuple[Path, bool]] = frozenset()
    missed: frozenset[tuple[Path, bool]] = frozenset()

    def then(self, other: Certain) -> Certain:
        """Both, one after the other."""
        read = self.read | other.read
        return Certain(read, (self.missed | other.missed) - read)

    def alternatively(self, other: Certain) -> Certain:
        """One of the two. A list that is not walked through at all misses nothing of its elements."""
        missed = self.missed | other.missed | {each for each in self.read ^ other.read if ITEM not in each[0]}
        return Certain((self.read | other.read) - missed, missed)


def certain_reads(explorations: Sequence[Exploration], wanted: Wanted) -> Certain:
    """What the evaluations read of the wanted source that can be when it is."""
    found: dict[tuple[Path, bool], list[set[NotedPath]]] = {}
    possible = [each for each in explorations if each.failure is None and wanted.can_have(each)]
    for number, each in enumerate(possible):
        for note in each.notes:
            if wanted.source.includes(note.path[0]) and note.use is not ValueUse.ANY:
                for key, within in _paths_read(note.path[1:], note.use):
                    found.setdefault(key, [set() for _ in possible])[number].add(within)
    read, missed = set[tuple[Path, bool]](), set[tuple[Path, bool]]()
    for key, by_number in found.items():
        walked = [_walked(each, wanted.source, key[0]) for each in possible]
        is_certain = all(elements <= seen for elements, seen in zip(walked, by_number, strict=True))
        (read if is_certain and any(walked) else missed).add(key)
    return Certain(frozenset(read), frozenset(key for key in missed if ITEM in key[0]))


def _paths_read(path: NotedPath, use: ValueUse) -> list[tuple[tuple[Path, bool], NotedPath]]:
    """The value and what it is a part of, within the same element of a list; and which element that is."""
    plain = plain_path(path)
    last = max((number for number, part in enumerate(plain) if part is ITEM), default=-1)
    lengths = range(max(last + 1, 1), len(path))
    paths = [(plain, False), *([] if use in TAKE_NULL else [(plain, True)])]
    paths += [(plain[:length], is_null) for length in lengths for is_null in (False, True)]
    return [(each, path[: last + 1]) for each in paths]


def _walked(exploration: Exploration, source: Source, path: Path) -> set[NotedPath]:
    """The elements that it walked through of the list that contains a path; itself, if none does."""
    if ITEM not in path:
        return {()}
    last = max(number for number, part in enumerate(path) if part is ITEM)
    elements = (each[1:] for each in exploration.walked if source.includes(each[0]))
    return {each for each in elements if plain_path(each) == path[: last + 1]}


def plain_path(path: NotedPath) -> Path:
    """A path without the numbers of elements that stand for all of their list."""
    return tuple(_plain(part) if isinstance(part, Element) else part for part in path)


def _plain(element: Element) -> Any:  # noqa: ANN401 - `ITEM`, or the first or last one
    return ITEM if not element.is_only else -element.number
