"""Named parts: the built-in ones of a package, and those that are installed as entry points."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Generic, TypeVar

from codex_multi_role.errors import UsageError
from codex_multi_role.reading.nearest import no_such

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

PartT = TypeVar("PartT")
_OWN = f"{__name__.partition('.')[0]}."
_scan_lock = threading.Lock()  # waits: for one scan of the installed packages
_REINSTALL = "in a checkout, run `pip install -e .` again"


@dataclass(frozen=True)
class Registry(Generic[PartT]):
    """All parts of one ``kind`` (a word for messages).

    ``group``: that of the entry points. ``built_in``: the ``module:name`` of each built-in part. A part is imported
    only on request, so that further parts do not slow down any command.
    """

    kind: str
    group: str
    built_in: Mapping[str, str]

    def names(self) -> list[str]:
        """The names of all parts, built-in and installed, sorted."""
        return sorted({*self.built_in, *_installed(self.group)})

    def find(self, name: str) -> PartT:
        """The part called ``name``: the built-in one, otherwise one of our own entry points, otherwise a plug-in's.

        Raises `UsageError` for an unknown name, with the nearest one, and for an installed part that does not load.
        """
        if name in self.built_in:
            known: PartT = resolve_name(self.built_in[name])
            return known
        entry = _installed(self.group).get(name)
        if entry is None:
            raise UsageError(*no_such_part(self.kind, self.group, name, self.names()))
        try:
            part: PartT = entry.load()
        except Exception as error:
            from codex_multi_role.reading.extras import missing_extra  # here: rarely needed, and slow to import

            if _is_own(entry) and (problem := missing_extra(error, f"the {self.kind} {name!r}")):
                raise problem from error
            where = f"the {self.kind} {name!r} ({entry.value})"
            hint = _REINSTALL if _is_own(entry) else "fix or remove it"
            raise UsageError(f"{where} does not load: {error}", hint) from error
        return part

    def that_load(self) -> Iterator[PartT]:
        """All parts except installed ones that do not load."""
        for name in self.names():
            with suppress(UsageError):
                yield self.find(name)

    def problems(self) -> Iterator[str]:
        """What is wrong with each installed part that does not load."""
        for name in self.names():
            try:
                self.find(name)
            except UsageError as error:
                yield str(error)

    def extension(self, name: str) -> str:
        """The extension that the installed part called ``name`` belongs to: its folder, or the package of a plug-in."""
        entry = _installed(self.group)[name]
        return entry.module.split(".")[2] if _is_own(entry) else str(entry.dist.name if entry.dist else entry.module)

    def code(self, name: str) -> Path | None:
        """Where the code of the part called ``name`` is; None if it is in no file.

        The file of the module for one of ours; for a plug-in the folder of the whole package, all of which it may use.
        """
        built_in = self.built_in.get(name)
        module = built_in.partition(":")[0] if built_in else _installed(self.group)[name].module
        modules = [module] if module.startswith(_OWN) else accumulate(module.split("."), "{}.{}".format)
        files = (getattr(import_module(each), "__file__", None) for each in modules)
        file = next((Path(file) for file in files if file), None)
        return file if file is None or module.startswith(_OWN) else file.parent


_HINTS: Registry[str] = Registry("hint", "codex_multi_role.hints", {})


def hint(about: str, otherwise: str = "") -> str:
    """What an extension advises ``about`` something that the core says, such as how a turn ended."""
    return _HINTS.find(about) if about in _HINTS.names() else otherwise


def no_such_part(kind: str, group: str, name: str, known: Iterable[str]) -> tuple[str, str]:
    """Like `no_such`; the hint also says if our own entry points are missing, as in a checkout not yet installed."""
    message, hint = no_such(kind, name, known)
    if not any(map(_is_own, _installed(group).values())):
        hint += f" Installing codex-multi-role registers more {kind}s; {_REINSTALL}."
    return message, hint


def _installed(group: str) -> Mapping[str, EntryPoint]:
    return _entry_points(group, tuple(sys.path))


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """By name; of several with one name, ours, otherwise the first on ``path``."""
    with _scan_lock:  # threads that need different groups at the same time share one scan
        found = reversed(tuple(_scan(path)(group=group)))
    return {entry.name: entry for entry in sorted(found, key=_is_own)}


@cache
def _scan(_path: tuple[str, ...]) -> Callable[..., EntryPoints]:
    """Read all entry points, which takes milliseconds; returns a function that selects some."""
    from importlib.metadata import entry_points  # imported only for parts that are not built in

    return entry_points().select


def _is_own(entry: EntryPoint) -> bool:
    return entry.value.startswith(_OWN)
