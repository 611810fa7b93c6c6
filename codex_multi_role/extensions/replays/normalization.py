"""All differences between two runs of a team that nobody caused by a change.

A recording has ``<<workspace>>`` and similar names in place of paths, in prompts and in answers. A replay inserts its
own paths, so that what a model said about its workspace applies to another. What has no name, such as the duration of
tests, is ignored when prompts are compared.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.host.spelling import with_texts

LEAST_PARTS = 3
"""A path of that many parts is recognized anywhere (``-I/home/me/shop``), a shorter one only at the start of a word."""
_TEMPORARY = {re.escape(place) for place in ("/tmp", "/var/tmp", tempfile.gettempdir())}
TEMPORARY = f"(?:{'|'.join(sorted(_TEMPORARY))})"
PASSED_OVER: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<![0-9a-z])\d{8}_\d{6}_[0-9a-f]{8}(?![0-9a-z])"), "<run>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b0x[0-9a-fA-F]{6,16}\b"), "<address>"),
    (re.compile(r"(?<![\w.])\d+\.\d+ ?(?:s|ms|us|µs|ns|seconds)\b(?: \(\d+:\d\d:\d\d\))?"), "<duration>"),
    (re.compile(r'(?<="seconds": )\d+(?:\.\d+)?|(?<="seconds":)\d+(?:\.\d+)?'), "<duration>"),
    (re.compile(r"(?:<<run folder>>/|(?<![\w./-]))[\w-]+(?:\.\d+)?/turn_\d{3,}(?=/)"), "<turn>"),
    (re.compile(r"(?<![\w./-])tests/\d{3,}(?=/)"), "<tests>"),
    (re.compile(rf"{TEMPORARY}/(?:pytest-of-[\w.-]+/pytest-\d+|[\w.+-]+)(?:/copy/[\w.+-]+)?"), "<temporary folder>"),
    (re.compile(r"^(platform|plugins:|cachedir:) .*$", re.MULTILINE), r"\1 <this machine>"),
)
"""Ids of runs and others, times, addresses of objects, durations to fractions of a second, the instance and number of a
role's turn, numbers of test runs, temporary folders and workspace copies there, and what pytest says of the machine."""


def normalize(text: str) -> str:
    """``text`` with the ignored differences replaced by fixed names."""
    for pattern, name in PASSED_OVER:
        text = pattern.sub(name, text)
    return text


class PathNames:
    """Replaces paths by names and names by paths; ``places``: absolute paths by name, of which a root is ignored."""

    def __init__(self, places: Mapping[str, Path]) -> None:
        self._paths = {f"<<{name}>>": str(path) for name, path in places.items() if path != Path(path.anchor)}
        spelled = {spelling: name for name, path in self._paths.items() for spelling in _spellings(path)}
        self._names = spelled
        longest_first = sorted(spelled, key=len, reverse=True)
        self._seen = re.compile("|".join(map(_pattern, longest_first))) if spelled else None
        self._named = re.compile("|".join(map(re.escape, self._paths))) if self._paths else None

    def named(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        """``value``, JSON, with names for paths."""
        seen = self._seen
        return value if seen is None else with_texts(value, lambda text: seen.sub(lambda at: self._names[at[0]], text))

    def placed(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        """``value``, JSON, with paths for names."""
        named = self._named
        return (
            value if named is None else with_texts(value, lambda text: named.sub(lambda at: self._paths[at[0]], text))
        )


def _spellings(path: str) -> set[str]:
    """The path itself, and its forms inside JSON within JSON."""
    return {path, json.dumps(path)[1:-1], json.dumps(path, ensure_ascii=False)[1:-1]}


def _pattern(path: str) -> str:
    begins = "" if len(Path(path).parts) > LEAST_PARTS else r"(?<![\w.-])"
    return rf"{begins}{re.escape(path)}(?![\w-]|\.\w)"
