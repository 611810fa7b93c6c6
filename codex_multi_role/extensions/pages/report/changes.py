"""What a run changed, file by file and line by line: for its decisions, and for parts of the report."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, groupby

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import TextLexer, find_lexer_class_for_filename

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.extensions.pages.report.page_parts import ReportPart, shown_pieces
from codex_multi_role.extensions.pages.report.rendering import template
from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.recorded import changes_of, files_of
from codex_multi_role.presentation.wording import plural
from codex_multi_role.run_folder import RunFolder, list_turns
from codex_multi_role.run_folder.past import START, decision_before
from codex_multi_role.workspace.differences import Changes, FileChange

Room = tuple[int, int, bool]
"""Most files that are named, most characters, and whether they have colours: a hostile file can hold up a lexer."""
IN_REPORT, ON_PAGE = (300, 500_000, False), (1_000, 2_000_000, True)
"""A report with two such parts and 1,000 turns stays below 15 MB. The end of a run waits for it."""
MOST_LINES, MOST_LINES_OF_A_FILE = 4_000, 1_500
"""That differ; git is not asked for more."""
LONGEST_LINE, ROW = 500, 90
"""Characters that are shown of a line, and those of the HTML around it."""
MOST_COLOURED = 20_000
"""Characters of a side of a hunk: some lexers take a time that grows with their square."""
_BEGIN = re.compile(rb"^diff --git ", re.MULTILINE)
_HUNK = re.compile(r"^@@ -(\d+)\S* \+(\d+)\S* @@ ?(.*)\n((?:[-+ \\].*\n?)*+)", re.MULTILINE)
_KINDS = {"+": "add", "-": "del", " ": "same"}
_SPANS = HtmlFormatter(nowrap=True)


@dataclass(frozen=True)
class DiffLine:
    """``old``, ``new``: its numbers, None where it does not exist; ``html``: its text."""

    kind: str
    old: int | None
    new: int | None
    html: Markup


@dataclass(frozen=True)
class DiffFile:
    """``differing``: how many lines differ; ``hunks``: heading and lines of each; ``writers``: who changed the file."""

    change: FileChange
    differing: int
    hunks: list[tuple[str, list[DiffLine]]]
    writers: Sequence[str]


def changes_parts(folder: RunFolder) -> Iterator[ReportPart]:
    """Since the start, and since the last decision; none if the states of the files cannot be read."""
    for since in dict.fromkeys((START, decision_before(folder, ""))):
        with suppress(CodexMultiRoleError):
            yield changes_part(folder, changes_of(folder, since), since, IN_REPORT)


def changes_part(folder: RunFolder, changes: Changes, since: str, room: Room) -> ReportPart:
    """All that changed since this point of the run. Raises `StorageError`."""
    name, point = ("Changes", "start") if since == START else ("Since the decision", f"decision {since}")
    heading = f"{plural(len(changes.files), 'file')} changed since the {point}"
    files = partial(diff_files, changes, folder.redact, writers_of(folder), room)
    values = {"id": f"changes-since-{point.split()[0]}", "command": folder.command("diff", "--since", since)}
    pieces = template("changes_part.html").generate(files=files, number=len(changes.files), **values)
    return ReportPart(values["id"], name, heading, shown_pieces(folder, map(Markup, pieces)))


def writers_of(folder: RunFolder) -> dict[str, list[str]]:
    """The turns that changed each file."""
    writers: dict[str, list[str]] = {}
    for role, turn in list_turns(folder):
        for path in files_of(turn):
            writers.setdefault(path, []).append(f"{role} {turn.number}")
    return writers


def diff_files(
    changes: Changes, redact: Callable[[str], str], writers: Mapping[str, list[str]], room: Room
) -> list[DiffFile]:
    """The first changed files, with their lines as long as the page has room. Raises `StorageError`."""
    most_files, left, has_colours = room
    named = {each: (each.added or 0) + (each.removed or 0) for each in changes.files[:most_files]}
    patches, found = _patches(changes, named), []
    for each, differing in named.items():
        patch = redact(patches.get(each.path, b"").decode(errors="replace"))
        size = sum(ROW + min(len(row), LONGEST_LINE) for row in patch.split("\n"))
        lexer = (has_colours and find_lexer_class_for_filename(each.path)) or TextLexer
        hunks = list(_hunks(patch, lexer(stripnl=False, ensurenl=False))) if patch and size <= left else []
        left -= size if hunks else 0
        change = replace(each, path=redact(each.path), old_path=redact(each.old_path))
        found.append(DiffFile(change, differing, hunks, writers.get(each.path, [])))
    return found


def _patches(changes: Changes, named: Mapping[FileChange, int]) -> dict[str, bytes]:
    """Those of the files that have room for the lines that differ, by path."""
    left, paths = MOST_LINES, list[str]()
    for change, differing in named.items():
        if 0 < differing <= min(left, MOST_LINES_OF_A_FILE):
            left -= differing
            paths += filter(None, (change.path, change.old_path))
    if not paths:
        return {}
    names = os.fsdecode(changes.printed("--name-only", "-z", paths=paths)).split("\0")
    patches = groupby(_BEGIN.split(changes.patch(*paths))[1:], lambda patch: patch.partition(b"\n")[0])
    return dict(zip(names, (b"".join(each) for _, each in patches), strict=False))  # two of a file that became a link


def _hunks(patch: str, lexer: Lexer) -> Iterator[tuple[str, list[DiffLine]]]:
    """The beginning of a file has no heading: its lines have numbers."""
    for old, new, heading, body in _HUNK.findall(patch):
        yield (heading or "⋯") if int(new) > 1 else "", list(_lines(count(int(old)), count(int(new)), body, lexer))


def _lines(old: Iterator[int], new: Iterator[int], body: str, lexer: Lexer) -> Iterator[DiffLine]:
    """Both sides are coloured as a whole, so that a text over several lines stays one."""
    rows = [row for row in body.split("\n") if row[:1] in _KINDS]
    texts = [printable(row[1:].rstrip("\r"), keep="\t")[:LONGEST_LINE] for row in rows]
    html = dict(enumerate(map(Markup.escape, texts)))
    for kinds in ("-", "+ "):
        numbers = [n for n, row in enumerate(rows) if row[0] in kinds]
        text = "\n".join(texts[n] for n in numbers)
        coloured = highlight(text, lexer, _SPANS).removesuffix("\n").split("\n") if len(text) <= MOST_COLOURED else ()
        if len(coloured) == len(numbers):
            html |= zip(numbers, map(Markup, coloured), strict=True)
    for n, row in enumerate(rows):
        kind = _KINDS[row[0]]
        yield DiffLine(kind, None if kind == "add" else next(old), None if kind == "del" else next(new), html[n])
