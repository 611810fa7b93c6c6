"""The part of the report with the lines of changed files, and who wrote each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from markupsafe import Markup

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.extensions.pages.report.entries import turn_id
from codex_multi_role.extensions.pages.report.page_parts import ReportPart
from codex_multi_role.extensions.pages.report.rendering import template
from codex_multi_role.extensions.results.lines import LineHistory, LineOrigin, line_history
from codex_multi_role.extensions.results.run_history import history_of
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import command_line

TEMPLATES = Path(__file__).parent / "templates"
MOST_FILES = 20
MOST_LINES = 300
MOST_BYTES = 500_000
"""Of a file: git needs seconds for the lines of a larger one, and every run waits for its report."""
LONGEST_LINE = 300
BEFORE, BETWEEN = "before", "between turns"


def lines(folder: RunFolder, changed: Sequence[str]) -> ReportPart | None:
    """The part for the report of the run in ``folder``; None if the states of no file are recorded."""
    files = ChangedFiles(folder, changed)
    blame = partial(command_line, "blame", "--run", folder.run_id, runs_dir=folder.path.parent)
    pieces = template("changed_lines.html", TEMPLATES).generate(files=files, blame=blame)
    return ReportPart("lines", "Lines", "Who wrote which line", map(Markup, pieces)) if files else None


def written_by(origin: LineOrigin) -> str:
    """The turn that wrote the line, or the step between whose turns it came; empty if no run wrote it."""
    if origin.role:
        return f"{origin.role} {origin.turn}"
    step = f" ({origin.unit})" if origin.unit else ""
    return f"{BETWEEN}{step}" if origin.run else ""


@dataclass(frozen=True)
class ChangedLine:
    """``turn``: the id of its entry in the report, empty if no turn wrote it."""

    number: int
    text: str
    who: str
    turn: str


@dataclass(frozen=True)
class ChangedFile:
    """The first `MOST_LINES` lines of the file, and how many ``more`` it has."""

    path: str
    lines: list[ChangedLine]
    more: int


class ChangedFiles:
    """Reads the first `MOST_FILES` of the ``changed`` files, while they are shown.

    A file is left out if it is binary, larger than `MOST_BYTES`, or gone; so are all if git cannot read the states.
    """

    def __init__(self, folder: RunFolder, changed: Sequence[str]) -> None:
        self._folder, self._paths = folder, changed[:MOST_FILES]
        self.more = len(changed) - len(self._paths)

    def __bool__(self) -> bool:
        return bool(self._paths) and self._folder.snapshots_path.is_dir()

    def __iter__(self) -> Iterator[ChangedFile]:
        with suppress(CodexMultiRoleError):
            history = history_of(self._folder)
            with line_history([history]) as recorded:
                for path in self._paths:
                    yield from self._file(path, recorded)

    def _file(self, path: str, recorded: LineHistory) -> Iterator[ChangedFile]:
        size = recorded.size(path)
        if size is None or size > MOST_BYTES:
            return
        origins = recorded.origins(path)
        if any("\0" in origin.text for origin in origins):
            return
        shown = [self._line(origin) for origin in origins[:MOST_LINES]]
        yield ChangedFile(path, shown, len(origins) - len(shown))

    def _line(self, origin: LineOrigin) -> ChangedLine:
        text = self._folder.redact(origin.text).expandtabs(4)[:LONGEST_LINE]
        entry = turn_id(origin.role, origin.turn) if origin.role else ""
        return ChangedLine(origin.line, text, written_by(origin) or BEFORE, entry)
