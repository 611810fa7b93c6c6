"""What documents are measured against: the existing files, and the names that the code knows."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from codex_multi_role.extensions.documentation.discovery import LANGUAGE_OF

_NAME = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)*")
_CALL = re.compile(r"\([^()]*\)\Z")
_PATH = re.compile(r"[\w.\-]+(?:/[\w.\-]+)*/?")
_WORD = re.compile(r"[A-Za-z_]\w*")
_SEPARATOR = re.compile(r"\.|::|#")
_NOT_JUDGED = {"self", "cls", "this", *dir(builtins), *keyword.kwlist}


class Evidence:
    """``files`` as the check ``code_graph`` lists them, ``external`` the names they import from elsewhere.

    A page is judged by the file that it is about, other documents by all files.
    """

    def __init__(self, name: str, files: Iterable[Mapping[str, Any]], external: Iterable[str]) -> None:
        self.paths = {str(file["path"]) for file in files}
        self._external = set(external)
        self._words = {name}
        self._symbols: set[str] = set()
        self._places = set(self.paths)
        self._words_of: dict[str, set[str]] = {}
        for path in self.paths:
            pure = PurePosixPath(path)
            self._words.update(_WORD.findall(path))
            self._places.update(parent.as_posix() for parent in pure.parents)
            self._places.update("/".join(pure.parts[start:]) for start in range(len(pure.parts)))
        for file in files:
            for symbol in (*file["functions"], *file["classes"], *file["constants"]):
                self._symbols.update(_SEPARATOR.split(symbol))
        self._words |= self._symbols
        self._name = name

    def learn(self, path: str, text: str) -> None:
        """Add every word of a source, because names of parameters and attributes count too."""
        words = set(_WORD.findall(text))
        self._words |= words
        self._words_of[path] = {self._name, *words, *_WORD.findall(path)}

    @property
    def has_symbols(self) -> bool:
        """Whether the code defines anything that a document could name."""
        return bool(self._symbols)

    def judge(self, code: str, about: str = "") -> bool | None:
        """Whether a text in code font is real; None if it claims nothing about this code.

        ``about``: the source file of the page that contains it. Paths may be of any file.
        """
        name = _CALL.sub("", code)
        if is_path(code):
            return code.rstrip("/") in self._places
        if not _NAME.fullmatch(name):
            return None
        parts = _SEPARATOR.split(name)
        words = self._words_of.get(about, self._words)
        if name in self._symbols:
            return name in words
        ordinary = name == code and name.islower() and name.isalnum()  # it may be a command, or a value
        foreign = parts[0] in self._external and (len(parts) > 1 or parts[0] not in self._words)
        if ordinary or foreign or parts[0] in _NOT_JUDGED:
            return None
        return all(part in words for part in parts)


def is_path(code: str) -> bool:
    """Whether it is the path of a source file or a folder: others may be anything, such as a user's data."""
    is_source = PurePosixPath(code).suffix in LANGUAGE_OF or code.endswith("/")
    return is_source and _PATH.fullmatch(code) is not None
