"""Named parts: the built-in ones of a package, and those that are installed as entry points."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from typing import Generic, TypeVar

from codex_multi_role.errors import UsageError
from codex_multi_role.reading.nearest import no_such

PartT = TypeVar("PartT")
_OWN = f"{__name__.partition('.')[0]}."
_REINSTALL = "in a checkout, run `pip install -e .` again"


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
        return sorted({*self.built_in, *self._installed})

    def find(self, name: str) -> PartT:
        """The part called ``name``: the built-in one, otherwise one of our own entry points, otherwise a plug-in's.

        Raises `UsageError` for an unknown name, with the nearest one, and for an installed part that does not load.
        """
        if name in self.built_in:
            known: PartT = resolve_name(f"{self.group}.{self.built_in[name]}")
            return known
        entry = self._installed.get(name)
        if entry is None:
            raise self._unknown(name)
        try:
            part: PartT = entry.load()
        except Exception as error:
            where = f"the {self.kind} {name!r} ({entry.value})"
            hint = _REINSTALL if _is_own(entry) else "mend or remove it"
            raise UsageError(f"{where} does not load: {error}", hint) from error
        return part

    @property
    def _installed(self) -> Mapping[str, EntryPoint]:
        return _entry_points(self.group, tuple(sys.path))

    def _unknown(self, name: str) -> UsageError:
        message, hint = no_such(self.kind, name, self.names())
        if not any(map(_is_own, self._installed.values())):
            hint += f" Installing codex-multi-role registers more {self.kind}s; {_REINSTALL}."
        return UsageError(message, hint)


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """By name; of several with one name, ours, otherwise the first on ``path``. Reading them takes milliseconds."""
    found = reversed(tuple(entry_points(group=group)))
    return {entry.name: entry for entry in sorted(found, key=_is_own)}


def _is_own(entry: EntryPoint) -> bool:
    return entry.value.startswith(_OWN)
