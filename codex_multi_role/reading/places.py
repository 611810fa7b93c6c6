"""The place of something in a file that people write: its line and column, and a name for people.

Also collects the mistakes that are found there, so that all of them are reported at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import ParamSpec

import yaml

from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.former_keys import SHORT_FOR
from codex_multi_role.reading.nearest import did_you_mean, no_such
from codex_multi_role.reading.yaml_loader import compose_yaml

# The items of these lists are called by the first of these keys that they have.
_NAMES = {
    "roles": ("role", ("name", "role_file")),
    "steps": ("step", ("id", "ask", "check", "call")),
    "finally": ("finally", ("id", "check")),
}


P = ParamSpec("P")


class WrongKey(ValueError):
    """A mistake that a model's validator finds; it is about the key that ``path`` leads to, and names it."""

    def __init__(self, message: str, *path: int | str) -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True)
class Place:
    """A file, or the value in it that the keys and indexes in ``path`` lead to.

    ``named``: how many of the last parts the message names itself. As text, ``file:line:column: role planner: limits``;
    the file is read for that, because nobody needs it before a mistake.
    """

    file: Path
    path: tuple[int | str, ...] = ()
    named: int = 0

    def __truediv__(self, part: int | str | tuple[int | str, ...]) -> Place:
        return replace(self, path=(*self.path, *(part if isinstance(part, tuple) else (part,))))

    def key(self, *names: int | str) -> Place:
        """The place of a key, or of what several lead to, which the message names."""
        return replace(self, path=(*self.path, *names), named=len(names))

    def __str__(self) -> str:
        mark = ":".join(map(str, ["", *self.position()]))
        shown = _shown(self._written_path()[: len(self.path) - self.named], self._nodes())
        return f"{self.file}{mark}{shown and f': {shown}'}"

    def position(self) -> list[int]:
        """Line and column, from 1; nothing if the file cannot be read."""
        marks = [node.start_mark for node in self._nodes()[-1:]]
        return [number + 1 for mark in marks for number in (mark.line, mark.column)]

    def written(self) -> str:
        """The value as it is in the file, if it is a single word or number."""
        node = next(reversed(self._nodes()), None)
        return node.value if isinstance(node, yaml.ScalarNode) else ""

    def _written_path(self) -> tuple[int | str, ...]:
        """The path without the key of a group whose value stands alone: ``for_each`` for ``for_each.items``."""
        for depth, (group, key) in enumerate(pairwise(self.path), 1):
            nodes = replace(self, path=self.path[:depth])._nodes() if key == SHORT_FOR.get(str(group)) else []
            if len(nodes) > depth and not isinstance(nodes[-1], yaml.MappingNode):
                return (*self.path[:depth], *self.path[depth + 1 :])
        return self.path

    def _nodes(self) -> list[yaml.Node]:
        return list(_nodes(_composed(self.file), self.path))

    def error(self, message: str, hint: str = "") -> DefinitionError:
        error = DefinitionError(f"{self}: {message}", hint, str(self.file), self.position())
        error.problem = message
        return error

    def unknown(self, kind: str, name: str, known: Iterable[str]) -> DefinitionError:
        """The error for an unknown ``name`` of a ``kind``, with the nearest known one."""
        return self.error(*no_such(kind, name, known))

    def unknown_key(self, key: str, known: Iterable[str], owner: str = "") -> DefinitionError:
        """The error for a key that is not among the ``known`` ones. ``owner``: what takes it, below this place."""
        names = list(known)
        hint = f"Known keys: {', '.join(names)}."
        if " " in key:  # in {description: one, two} the comma ends the description
            hint = f"If it continues the text before it, put that whole text in quotes. {hint}"
        meant = f": it belongs to {owner}" if owner else did_you_mean(key, names)
        return self.key(key).error(f'unknown key "{key}"{meant}', hint)


def key_path(path: tuple[int | str, ...]) -> str:
    """``("roles", 1, "prompt_flags")`` as ``roles[1].prompt_flags``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _shown(path: tuple[int | str, ...], nodes: list[yaml.Node]) -> str:
    """The key path, with the name of a role or a step in place of its number."""
    kind, keys = _NAMES.get(str(path[0]), ("", ())) if path else ("", ())
    if not kind or len(path) < 2 or not isinstance(path[1], int):
        return key_path(path)
    name = _name(nodes[2] if len(nodes) > 2 else None, keys)
    item = f"{kind} {name}" if name else key_path(path[:2])
    return ": ".join(filter(None, [item, key_path(path[2:])]))


def _name(node: yaml.Node | None, keys: Iterable[str]) -> str:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    given = {key.value: value.value for key, value in pairs if isinstance(value, yaml.ScalarNode)}
    return next((Path(given[key]).stem if key == "role_file" else given[key] for key in keys if given.get(key)), "")


def _nodes(root: yaml.Node | None, path: tuple[int | str, ...]) -> Iterator[yaml.Node]:
    """The nodes on the way down ``path``, as far as the file has them; a value starts where its key does."""
    if (node := root) is not None:
        yield node
    for part in path:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == str(part)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            found = (node.value[part], node.value[part])
        elif part in SHORT_FOR.values():
            continue
        else:
            found = None
        if found is None:
            return
        key, node = found
        yield type(node)(node.tag, node.value, key.start_mark, node.end_mark)


def _composed(file: Path) -> yaml.Node | None:
    """The file's nodes; None if they cannot be read (again)."""
    try:
        return _compose(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, yaml.YAMLError):
        return None


_compose = lru_cache(maxsize=8)(compose_yaml)  # a file with many mistakes is read once


class Problems:
    """Collects definition errors, so that all of them are reported at once."""

    def __init__(self) -> None:
        self._found: dict[str, DefinitionError] = {}

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep a `DefinitionError` of the block, and continue after it."""
        try:
            yield
        except DefinitionError as error:
            self.add(error)

    def collect(self, check: Callable[P, object], *arguments: P.args, **named: P.kwargs) -> None:
        """Keep a `DefinitionError` that the check raises."""
        with self.collected():
            check(*arguments, **named)

    def add(self, error: DefinitionError) -> None:
        self._found |= {str(each): each for each in error.problems}

    def raise_found(self) -> None:
        """Raise one `DefinitionError` for all that were collected, if there are any."""
        if self._found:
            raise DefinitionError.together(self._found.values())
