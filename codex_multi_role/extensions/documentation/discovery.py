"""Read the source files of a folder, with limits and following no links; the names that each defines and imports."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from codex_multi_role.extensions.measuring.workspace_copies import LEFT_OUT

MAX_FILE_BYTES = 5 * 1024 * 1024
MAX_ENTRIES = 200_000
_ENVIRONMENT = "pyvenv.cfg"
_LANGUAGES = {
    "Python": (".py", ".pyi"),
    "JavaScript": (".js", ".jsx", ".mjs", ".cjs"),
    "TypeScript": (".ts", ".mts", ".cts"),
    "TSX": (".tsx",),
    "Go": (".go",),
    "Rust": (".rs",),
    "Java": (".java",),
    "C": (".c", ".h"),
    "C++": (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"),
}
LANGUAGE_OF = {suffix: language for language, suffixes in _LANGUAGES.items() for suffix in suffixes}


@dataclass(frozen=True)
class SourceFile:
    """``path`` is relative to the folder; ``text`` is empty if ``problem`` says why it cannot be read."""

    path: str
    language: str
    size: int
    sha256: str
    text: str = field(default="", repr=False)
    problem: str = ""

    @property
    def lines(self) -> int:
        return self.text.count("\n") + bool(self.text and not self.text.endswith("\n"))


class Folder:
    """A walk through ``root`` that skips the ``forbidden`` folders.

    Afterwards, ``other`` counts the files that are not source code by their ending.
    """

    def __init__(self, root: Path, exclude: Sequence[str] = (), forbidden: Collection[Path] = ()) -> None:
        self.root = root
        self.other: Counter[str] = Counter()
        self._exclude = exclude
        self._forbidden = forbidden

    def sources(self) -> Iterator[SourceFile]:
        """Each source file, sorted, without hidden folders, links, environments and excluded paths.

        Raises ValueError for a folder of more than ``MAX_ENTRIES`` files.
        """
        for path in sorted(self._paths()):
            ending = Path(path).suffix.lower()
            if ending not in LANGUAGE_OF:
                self.other[ending or Path(path).name] += 1
            else:
                yield read_source(self.root / path, path)

    def _paths(self) -> Iterator[str]:
        count = 0
        for place, folders, names in os.walk(self.root):
            here = Path(place)
            folders[:] = [] if _ENVIRONMENT in names else [each for each in folders if self._enters(here / each)]
            for name in names:
                relative = (here / name).relative_to(self.root).as_posix()
                if name.startswith(".") or self._is_excluded(relative) or not _is_plain(here / name):
                    continue
                count += 1
                if count > MAX_ENTRIES:
                    raise ValueError(f"more than {MAX_ENTRIES} files")
                yield relative

    def _enters(self, folder: Path) -> bool:
        name = folder.name
        hidden = name.startswith(".") or name in LEFT_OUT or name.endswith(".dist-info")
        excluded = hidden or folder in self._forbidden or self._is_excluded(folder.relative_to(self.root).as_posix())
        return not excluded

    def _is_excluded(self, relative: str) -> bool:
        return any(fnmatchcase(relative, glob.rstrip("/")) for glob in self._exclude)


def _is_plain(path: Path) -> bool:
    """Whether it is a regular file with a UTF-8 name. A pipe would block; a link may lead anywhere."""
    is_text = str(path).encode(errors="ignore").decode() == str(path)
    return is_text and path.is_file() and not path.is_symlink()


def read_source(place: Path, path: str) -> SourceFile:
    """The file at ``place`` with its text of at most ``MAX_FILE_BYTES``, or with the reason why it has none."""
    language = LANGUAGE_OF[Path(path).suffix.lower()]
    try:
        size = place.stat().st_size
        data = place.read_bytes() if size <= MAX_FILE_BYTES else b""
    except OSError as error:
        return SourceFile(path, language, 0, "", problem=f"cannot be read: {error.strerror}")
    if size > MAX_FILE_BYTES:
        with place.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return SourceFile(path, language, size, sha256, problem=f"larger than {MAX_FILE_BYTES} bytes")
    sha256 = hashlib.sha256(data).hexdigest()
    if b"\0" in data:
        return SourceFile(path, language, size, sha256, problem="binary: it has a NUL byte")
    try:
        return SourceFile(path, language, size, sha256, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return SourceFile(path, language, size, sha256, problem=f"line {line}: not UTF-8 text")


@dataclass(frozen=True)
class Import:
    """``name`` as the language writes it; ``names``: imported from it; ``level``: leading dots of a Python name."""

    name: str
    names: tuple[str, ...] = ()
    level: int = 0


@dataclass
class Symbols:
    """``functions`` and ``classes`` in order, a method as ``Class.method``; ``constants``: other names.

    ``deferred``: imports inside functions, which are a way to avoid cycles. ``partly``: the lines that could not be
    read, of a file that otherwise could.
    """

    functions: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    deferred: list[Import] = field(default_factory=list)
    problem: str = ""
    partly: str = ""


@dataclass
class Connections:
    """By path, the files that each file depends on, and those it imports later; ``outside``: names from elsewhere."""

    dependencies: dict[str, set[str]] = field(default_factory=dict)
    deferred: dict[str, set[str]] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)

    def __or__(self, other: Connections) -> Connections:
        return Connections(
            self.dependencies | other.dependencies, self.deferred | other.deferred, self.outside | other.outside
        )
