"""Named parts: the built-in ones of a package, and those that other packages provide as entry points."""

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

    ``group``: the package of the built-in parts, and the group of the entry points. ``built_in``: the ``module:name``
    of each within that package. A part is imported only on request, so that further parts do not slow down any command.
    """

    kind: str
    group: str
    built_in: Mapping[str, str]

    def names(self) -> list[str]:
        """The names of all parts, built-in and installed, sorted."""
        return sorted({*self.built_in, *entry_points(group=self.group).names})

    def find(self, name: str) -> PartT:
        """The part called ``name``; a built-in one takes precedence over an installed one.

        Raises `UsageError` for an unknown name, with the nearest one, and for an installed part that does not load.
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
