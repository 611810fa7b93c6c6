"""Parts that go by a name: the built-in ones of a room, and those that other packages bring by entry point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Generic, TypeVar

from codex_multi_role.errors import UsageError
from codex_multi_role.reading.nearest import no_such

PartT = TypeVar("PartT")


@dataclass(frozen=True)
class Registry(Generic[PartT]):
    """All parts of one ``kind`` (a word for messages).

    ``group``: the package of the built-in ones, and the entry points' group. ``built_in``: where in that package each
    is, ``module:name``; none is imported before it is asked for, so that one more costs no command any time.
    """

    kind: str
    group: str
    built_in: Mapping[str, str]

    def names(self) -> list[str]:
        """The names of all there are, built in and installed, sorted."""
        return sorted({*self.built_in, *entry_points(group=self.group).names})

    def find(self, name: str) -> PartT:
        """The part called ``name``; a built-in one wins over an installed one.

        Raises UsageError for a name that none has, with the nearest one, and for an installed one that does not load.
        """
        if name in self.built_in:
            known: PartT = resolve_name(f"{self.group}.{self.built_in[name]}")
            return known
        found = entry_points(group=self.group, name=name)
        if not found:
            raise UsageError(*no_such(self.kind, name, self.names()))
        entry = next(iter(found))
        try:
            part: PartT = entry.load()
        except Exception as error:
            where = f"the {self.kind} {name!r} ({entry.value})"
            raise UsageError(f"{where} does not load: {error}", "mend or remove it") from error
        return part
