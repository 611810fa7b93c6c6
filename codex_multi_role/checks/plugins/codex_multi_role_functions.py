"""Give the functions of a loaded file the code of a changed text of that file."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import AsyncGeneratorType, CodeType, CoroutineType, FunctionType, GeneratorType

OF_FUNCTIONS = 0x0001 | 0x0002
"""The flags CO_OPTIMIZED and CO_NEWLOCALS, which the code of a module or a class does not have both."""
RUNNING: dict[type, str] = {GeneratorType: "gi_code", CoroutineType: "cr_code", AsyncGeneratorType: "ag_code"}

Change = tuple[FunctionType, CodeType]


class LoadedFunctions:
    """The functions of the file at ``path``, with the text ``text``, that exist now, wherever they are referred to."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._original = path, _compiled(text, path)
        self._by_name: dict[tuple[str, int], list[FunctionType]] = {}
        self.problem = ""
        for each in gc.get_objects():
            kind = type(each)
            if kind is FunctionType and self._is_own(each.__code__):
                self._by_name.setdefault(_name(each.__code__), []).append(each)
            elif kind in RUNNING and self._is_own(getattr(each, RUNNING[kind])):
                self.problem = "a generator or coroutine of the file already exists"

    def changes(self, text: str) -> list[Change] | None:
        """The new code of each function if the file's text is ``text``; None if new code cannot replace the old.

        A function that does not exist yet gets its code from the one around it. A file that is not loaded has none.
        """
        if not self._by_name:
            return []
        found: list[Change] = []
        for old, new, is_outermost in _differing(self._original, _compiled(text, self._path)):
            functions = [each for each in self._by_name.get(_name(old), ()) if each.__code__ == old]
            if (is_outermost and not functions) or old.co_freevars != new.co_freevars:
                return None
            found += [(each, new) for each in functions]
        return found

    def _is_own(self, code: CodeType) -> bool:
        file = code.co_filename
        return file.endswith(Path(self._path).name) and os.path.realpath(file) == self._path


def apply(changes: Iterable[Change]) -> None:
    for function, code in changes:
        function.__code__ = code


def _compiled(text: str, path: str) -> CodeType:
    return compile(text, path, "exec", dont_inherit=True)


def _name(code: CodeType) -> tuple[str, int]:
    return code.co_name, code.co_firstlineno


def _differing(old: CodeType, new: CodeType, is_inside: bool = False) -> Iterator[tuple[CodeType, CodeType, bool]]:
    """The functions whose code differs, with the new code, and whether no other function is around them.

    The code of a module or a class has been executed already.
    """
    if old == new:
        return
    is_function = old.co_flags & OF_FUNCTIONS == OF_FUNCTIONS
    if is_function:
        yield old, new, not is_inside
    for each, other in zip(_inner(old), _inner(new), strict=False):
        if each.co_name == other.co_name:  # a lambda may be gone
            yield from _differing(each, other, is_inside or is_function)


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]
