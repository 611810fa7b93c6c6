"""Give the functions of a loaded file the code of a changed text of that file."""

from __future__ import annotations

import ast
import contextlib
import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from types import AsyncGeneratorType, CodeType, CoroutineType, FunctionType, GeneratorType

OF_FUNCTIONS = 0x0001 | 0x0002
"""The flags CO_OPTIMIZED and CO_NEWLOCALS, which the code of a module or a class does not have both."""
RUNNING: dict[type, str] = {GeneratorType: "gi_code", CoroutineType: "cr_code", AsyncGeneratorType: "ag_code"}
Change = tuple[FunctionType, CodeType]
Part = tuple[range, range]
"""The lines of a statement, and those of the head of the class around it."""


class LoadedFunctions:
    """The functions of the file at ``path``, with the text ``text``, that exist now, wherever they are referred to."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._file_name = path, Path(path).name
        self._lines, self._original = text.split("\n"), _compiled(text, path)
        self._codes = set(_all_inner(self._original))
        statements = ast.parse(text).body if "\r" not in text else []
        self._parts = list(_parts(statements))
        imports = _lines_of(each for each in statements if isinstance(each, (ast.Import, ast.ImportFrom)))
        self._compiled_part = partial(_compiled_part, path, set[int]().union(*imports))
        self._original_part = cache(partial(self._compiled_part, self._lines))
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
        before, after = self._changed_statement(text) or (self._original, _compiled(text, self._path))
        for old, new, is_outermost in _differing(before, after):
            functions = [each for each in self._by_name.get(_name(old), ()) if each.__code__ == old]
            if (is_outermost and not functions) or old.co_freevars != new.co_freevars:
                return None
            found += [(each, new) for each in functions]
        return found

    def _changed_statement(self, text: str) -> tuple[CodeType, CodeType] | None:
        """The code of the one statement that differs, old and new, because a whole file takes long to parse.

        None if more than that differs, or if its functions have another code in the whole file.
        """
        lines = text.split("\n")
        changed = [number for number, (old, new) in enumerate(zip(self._lines, lines, strict=False), 1) if old != new]
        around = [each for each in self._parts if changed and changed[0] in each[0] and changed[-1] in each[0]]
        if len(lines) != len(self._lines) or not around:
            return None
        with contextlib.suppress(SyntaxError):  # the statement has another end now
            before, after = self._original_part(around[0]), self._compiled_part(lines, around[0])
            if all(old in self._codes for old, _, _ in _differing(before, after)):
                return before, after
        return None

    def _is_own(self, code: CodeType) -> bool:
        file = code.co_filename
        return file.endswith(self._file_name) and os.path.realpath(file) == self._path


def apply(changes: Iterable[Change]) -> None:
    for function, code in changes:
        function.__code__ = code


def _compiled(text: str, path: str) -> CodeType:
    return compile(text, path, "exec", dont_inherit=True)


def _compiled_part(path: str, imports: set[int], lines: Sequence[str], part: Part) -> CodeType:
    """``part`` of the lines, but with the ``imports`` of the file: Python compiles what is imported in another way."""
    kept = imports.union(*part)
    return _compiled("\n".join(line if number in kept else "" for number, line in enumerate(lines, 1)), path)


def _parts(statements: Sequence[ast.stmt]) -> Iterator[Part]:
    """The statements in classes, then all that are in none."""
    for each in statements:
        if isinstance(each, ast.ClassDef):
            inner = _lines_of(each.body)
            head = range(_lines_of([each])[0].start, inner[0].start)
            yield from ((lines, head) for lines in inner)
    yield from ((lines, range(0)) for lines in _lines_of(statements))


def _lines_of(statements: Iterable[ast.stmt]) -> list[range]:
    """The lines of each statement, decorators included; those that share a line are one."""
    found: list[range] = []
    for each in statements:
        first = min(part.lineno for part in (each, *getattr(each, "decorator_list", ())))
        lines = range(first, (each.end_lineno or first) + 1)
        found.append(range(found.pop().start, lines.stop) if found and first in found[-1] else lines)
    return found


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


def _all_inner(code: CodeType) -> Iterator[CodeType]:
    for each in _inner(code):
        yield each
        yield from _all_inner(each)
