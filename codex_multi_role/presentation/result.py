"""The result of a run for people: title, key figures, and the text or the beginning of the file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_multi_role.errors import StorageError
from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.wording import named, one_line
from codex_multi_role.run_folder import RunFolder

TERMINAL_LINES = 24
TERMINAL_COLUMNS = 100
READ_CHARACTERS = 100_000


CHANGED_FILES = "Changed files"
"""The title of the result that lists them, that of a flow without one of its own."""


@dataclass(frozen=True)
class ShownResult:
    """``figures``: name and value. ``file``: absolute path or empty. ``is_whole``: whether ``text`` is complete.

    ``is_markdown``: whether ``text`` is Markdown.
    """

    title: str
    figures: list[tuple[str, str]]
    text: str
    file: str
    is_whole: bool
    is_markdown: bool


def result_of(folder: RunFolder, record: Mapping[str, Any]) -> ShownResult | None:
    """Return the result in ``record``, the run's ``run.json``, without secrets; None if it has none."""
    left = folder.redact.within(list(record.get("left_by_tests") or []))
    result = record.get("result") or ({"title": CHANGED_FILES} if left else None)
    if not isinstance(result, Mapping):
        return None
    result = folder.redact.within(dict(result))
    path = _path(folder, record, str(result.get("file") or ""))
    text = str(result.get("text") or "")
    text, is_whole = text[:READ_CHARACTERS], len(text) <= READ_CHARACTERS
    if not text and path is not None:
        text, is_whole = _beginning(folder, path)
    figures = [(one_line(name), _value(value)) for name, value in dict(result.get("figures") or {}).items()]
    return ShownResult(
        title=one_line(result.get("title", "Result")),
        figures=[*figures, *([("left by test runs", named(left, 3))] if left else [])],
        text="\n".join(printable(line.expandtabs(4)) for line in text.splitlines()),
        file=str(path) if path else "",
        is_whole=is_whole,
        is_markdown=result.get("format") == "markdown",
    )


def whole_text(folder: RunFolder, record: Mapping[str, Any]) -> str | None:
    """Return the text or the file of the result in ``record`` exactly, without secrets; None if it has neither.

    Raises `StorageError`.
    """
    result = record.get("result")
    if not isinstance(result, Mapping):
        return None
    if text := str(result.get("text") or ""):
        return folder.redact(text).encode("utf-8", "replace").decode()
    path = _path(folder, record, str(result.get("file") or ""))
    if path is None:
        return None
    try:
        return folder.redact(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise StorageError(f"cannot read the result of run {folder.run_id}: {error}") from error


def result_lines(result: ShownResult, whole: str) -> Iterator[str]:
    """Yield the result as a terminal shows it at the end of a run. ``whole``: the command that prints all of it."""
    yield result.title
    lines = [row for line in result.text.splitlines() for row in textwrap.wrap(line, TERMINAL_COLUMNS) or [""]]
    yield from (f"  {line}" if line else "" for line in lines[:TERMINAL_LINES])
    if len(lines) > TERMINAL_LINES or not result.is_whole:
        yield f"  … the rest: {result.file or f'`{whole}`'}"
    elif result.file:
        yield f"  in {result.file}"
    if result.figures:
        yield f"  {' · '.join(f'{name} {value}' for name, value in result.figures)}"


def _path(folder: RunFolder, record: Mapping[str, Any], name: str) -> Path | None:
    if not name:
        return None
    places = (folder.path, Path(str(record.get("workspace") or folder.path)))
    return next((place / name for place in places if (place / name).is_file()), None)


def _beginning(folder: RunFolder, path: Path) -> tuple[str, bool]:
    """The first characters of a file, and whether they are all of them."""
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(READ_CHARACTERS + 1)
        return folder.redact(text)[:READ_CHARACTERS], len(text) <= READ_CHARACTERS
    return "", True


def _value(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.4g}"
    return one_line(value)
