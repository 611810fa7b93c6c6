"""Parts of the report page that extensions add: entry points in the group ``codex_multi_role.page_parts``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from codex_multi_role.presentation.wording import one_line
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder import RunFolder


@dataclass(frozen=True)
class ReportPart:
    """A section below the turns. ``id``: its anchor; ``name``: its link at the top of the page.

    ``pieces``: the HTML below the heading, made while the page is written. What is not `Markup` is escaped.
    """

    id: str
    name: str
    heading: str
    pieces: Iterable[str]


MakePart = Callable[[RunFolder, Sequence[str]], ReportPart | None]
"""An entry: gets a run's folder and the paths that it changed; returns None if there is nothing to show."""
PARTS: Registry[MakePart] = Registry("part of the report", "codex_multi_role.page_parts", {})


def load_parts() -> None:
    """Find and import all parts, so that no page waits for this. Raises `UsageError` if one does not load."""
    for name in PARTS.names():
        PARTS.find(name)


def page_parts(folder: RunFolder, changed: Sequence[str]) -> list[ReportPart]:
    """The parts that have something to show, by name. In place of one that fails, the page says why."""
    return [part for name in PARTS.names() if (part := _part(name, folder, changed))]


def _part(name: str, folder: RunFolder, changed: Sequence[str]) -> ReportPart | None:
    try:
        part = PARTS.find(name)(folder, changed)
    except Exception as error:
        title = name.replace("_", " ").capitalize()
        return ReportPart(name, title, title, [_failure(folder, error)])
    return part and replace(part, pieces=shown_pieces(folder, part.pieces))


def shown_pieces(folder: RunFolder, pieces: Iterable[str]) -> Iterator[str]:
    """In place of one that fails, the page says why."""
    try:
        yield from pieces
    except Exception as error:
        yield _failure(folder, error)


def _failure(folder: RunFolder, error: Exception) -> Markup:
    return Markup('<p class="cut">This cannot be shown: {}</p>').format(one_line(folder.redact(str(error)), 500))
