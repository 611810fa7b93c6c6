"""The tool ``knowledge_lookup``: find the lines of the workspace's text files with the most words of a query."""

from __future__ import annotations

import heapq
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_multi_role.checks.tools.tool import Tool, ToolContext, ToolResult
from codex_multi_role.workspace import PathRefused, Workspace

MOST_FILES = 5_000
MOST_BYTES = 50 * 1024 * 1024
LARGEST_FILE_BYTES = 1024 * 1024
LONGEST_SECONDS = 10.0
LONGEST_LINE = 300
MOST_RESULTS = 50
RESULTS = 10
FOLDERS_LEFT_OUT = frozenset({"__pycache__", "node_modules", "venv"})
"""In addition to folders whose name begins with a dot."""

_WORD = re.compile(r"\w+")
_SCHEMA = {
    "type": "object",
    "required": ["query"],
    "additionalProperties": False,
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 500, "description": "Words to search for."},
        "max_results": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS, "description": f"Else {RESULTS}."},
    },
}


@dataclass(frozen=True)
class Line:
    """A line with ``words`` of the query's words."""

    words: int
    path: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.number}: {self.text}"


class Search:
    """One search; if it stops at a limit, ``stopped_at`` names the limit."""

    def __init__(self, context: ToolContext, words: frozenset[str]) -> None:
        self._context = context
        self._words = words
        self._deadline = time.monotonic() + LONGEST_SECONDS
        self._files = self._bytes = 0
        self.found = 0
        self.stopped_at = ""

    def best(self, number: int) -> list[Line]:
        """The best lines first, equal ones in the order of files and lines. ``found`` counts all matches."""
        lines = (line for path in self._paths() for line in self._lines_of(path))
        return heapq.nsmallest(number, lines, key=lambda line: (-line.words, line.path, line.number))

    def _paths(self) -> Iterator[str]:
        """Regular files by name, folder by folder; links are not followed."""
        root = self._context.workspace.root
        for folder, names, files in os.walk(root):
            names[:] = sorted(name for name in names if not name.startswith(".") and name not in FOLDERS_LEFT_OUT)
            for name in sorted(files):
                if not name.startswith("."):
                    self._files += 1
                    if self._is_over():
                        return
                    yield str((Path(folder) / name).relative_to(root))

    def _is_over(self) -> bool:
        if self._files > MOST_FILES:
            self.stopped_at = f"{MOST_FILES} files"
        elif self._bytes > MOST_BYTES:
            self.stopped_at = f"{MOST_BYTES:,} bytes"
        elif time.monotonic() > self._deadline or self._context.stopping.is_set():
            self.stopped_at = "the end of its time"
        return bool(self.stopped_at)

    def _lines_of(self, path: str) -> Iterator[Line]:
        text = _text(self._context.workspace, path)
        self._bytes += len(text)
        for number, line in enumerate(text.splitlines(), 1):
            if known := len(self._words & words_of(line)):
                self.found += 1
                yield Line(known, path, number, line.strip()[:LONGEST_LINE])


def words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _text(workspace: Workspace, relative: str) -> str:
    """The text of a file; empty if it is not text, is too large, or is outside the workspace."""
    try:
        path = workspace.resolve_inside(relative)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE_BYTES:
                return ""
            data = file.read(LARGEST_FILE_BYTES)
        return "" if b"\0" in data else data.decode("utf-8")
    except (PathRefused, OSError, UnicodeDecodeError):
        return ""


def _call(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    search = Search(context, words_of(str(arguments["query"])))
    shown = search.best(int(arguments.get("max_results", RESULTS)))
    output = [str(line) for line in shown] or ["No text file in the workspace contains any of these words."]
    if search.found > len(shown):
        output.append(f"({search.found - len(shown)} more lines contain some of the words; search for other words)")
    if search.stopped_at:
        output.append(f"(the search stopped at {search.stopped_at}: not every file was searched)")
    return ToolResult("\n".join(output))


knowledge_lookup = Tool(
    name="knowledge_lookup",
    description=(
        "Search the text files of the workspace for words. Returns the lines with most of them, best first, as "
        "file:line: text. Hidden, binary and large files are skipped."
    ),
    input_schema=_SCHEMA,
    call=_call,
)
