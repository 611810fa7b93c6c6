"""Changes as a page shows them: files, hunks and numbered lines, with the colours of their language, as HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from unidiff.patch import Hunk, PatchSet

from codex_multi_role.extensions.pages.report.changes import file_patches
from codex_multi_role.host.spelling import printable
from codex_multi_role.run_folder.typed_answers import AFTER, BEFORE
from codex_multi_role.workspace.differences import Changes, FileChange

MOST_LINES = 4000
"""Of one page; files beyond them are only named."""
MOST_LINES_OF_A_FILE = 1500
LONGEST_LINE = 500
_KINDS = {"+": "add", "-": "del"}
_SPANS = HtmlFormatter(nowrap=True)


@dataclass(frozen=True)
class DiffLine:
    """``old``, ``new``: its numbers, None where it does not exist; ``html``: in colours."""

    kind: str
    old: int | None
    new: int | None
    html: Markup
    text: str

    @property
    def place(self) -> tuple[str, int]:
        """The side and the number that a comment on it names."""
        return (AFTER, self.new) if self.new is not None else (BEFORE, self.old or 0)


@dataclass(frozen=True)
class DiffFile:
    """``hunks``: heading and lines of each; ``unseen``: why it has none; ``writers``: who changed the file."""

    change: FileChange
    hunks: list[tuple[str, list[DiffLine]]] = field(default_factory=list)
    unseen: str = ""
    writers: Sequence[str] = ()

    @property
    def path(self) -> str:
        return self.change.path

    @property
    def anchor(self) -> str:
        return f"file-{re.sub(r'[^A-Za-z0-9]+', '-', self.path)}"


def diff_files(changes: Changes, redact: Callable[[str], str], writers: dict[str, list[str]]) -> list[DiffFile]:
    """Every changed file, with its lines as long as the page has room. Raises `StorageError`."""
    left, found = MOST_LINES, []
    for change, patch in zip(changes.files, file_patches(changes), strict=False):
        count = (change.added or 0) + (change.removed or 0)
        if change.added is None or not count:
            found.append(DiffFile(change, [], "binary" if change.added is None else "no line differs"))
        elif count > min(left, MOST_LINES_OF_A_FILE):
            found.append(DiffFile(change, [], f"{count:,} lines, too many for this page"))
        else:
            found.append(DiffFile(change, _hunks(change, patch, redact)))
            left -= count
    return [replace(each, writers=writers.get(each.path, ())) for each in found]


def _hunks(change: FileChange, patch: bytes, redact: Callable[[str], str]) -> list[tuple[str, list[DiffLine]]]:
    body = patch[patch.index(b"\n--- ") + 1 :].split(b"\n", 2)[2]  # the names may be quoted: they are known
    text = redact(f"--- a\n+++ b\n{body.decode(errors='replace')}")
    lexer = _lexer(change.path)
    return [(_heading(hunk), list(_lines(hunk, lexer))) for file in PatchSet(text) for hunk in file]


def _heading(hunk: Hunk) -> str:
    """Where in the file it is; empty at its beginning. The lines themselves have numbers."""
    return hunk.section_header or "⋯" if hunk.target_start > 1 else ""


def _lines(hunk: Hunk, lexer: Lexer) -> Iterator[DiffLine]:
    """Both sides are coloured as a whole, so that a text over several lines stays one."""
    rows = [line for line in hunk if line.line_type in " +-"]
    texts = [printable(row.value.rstrip("\r\n"), keep="\t")[:LONGEST_LINE] for row in rows]
    sides = {side: [n for n, row in enumerate(rows) if row.line_type in kinds] for side, kinds in _SIDES.items()}
    html: dict[int, Markup] = {}
    for numbers in sides.values():
        coloured = highlight("\n".join(texts[n] for n in numbers), lexer, _SPANS).removesuffix("\n").split("\n")
        if len(coloured) == len(numbers):
            html |= {n: Markup(line) for n, line in zip(numbers, coloured, strict=True)}
    for n, row in enumerate(rows):
        kind = _KINDS.get(row.line_type, "same")
        yield DiffLine(kind, row.source_line_no, row.target_line_no, html.get(n, Markup.escape(texts[n])), texts[n])


def _lexer(path: str) -> Lexer:
    options = {"stripnl": False, "ensurenl": False}
    try:
        return get_lexer_for_filename(path, **options)
    except ClassNotFound:
        return TextLexer(**options)


_SIDES = {BEFORE: "-", AFTER: " +"}
