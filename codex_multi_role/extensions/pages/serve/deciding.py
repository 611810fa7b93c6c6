"""A decision as a page shows it: what the question is about, the diff, and the form as it was sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from unidiff.patch import Hunk, PatchSet

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.pages.report.changes import file_patches
from codex_multi_role.extensions.pages.report.flow_picture import worst_case_of
from codex_multi_role.extensions.pages.serve.forms import Field, Form
from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.deciding import Situation, situation_of
from codex_multi_role.run_folder import Question, RunFolder
from codex_multi_role.run_folder.typed_answers import (
    AFTER,
    BEFORE,
    COMMENTS,
    from_edited,
    in_words,
    kind_of_field,
    problem_of,
    to_edit,
)
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


OF_VALUES, OF_LINES, ADD, CHOSEN = "value.", "on.", "add", "chosen"
"""Form fields: beginnings of the names for values and for comments on lines; the button for another comment, and its
value if the fields below `CHOSEN` name the line."""
_PLACE = re.compile(rf"({BEFORE}|{AFTER}):([1-9][0-9]{{0,8}}):(.+)", re.DOTALL)


@dataclass(frozen=True)
class ShownDecision:
    """``at_most``: the worst case of the whole run; ``others``: what else the run asks."""

    question: Question
    situation: Situation
    files: list[DiffFile]
    at_most: str
    fields: list[Field]
    sent: Form
    others: list[Question]

    @property
    def comment(self) -> str:
        return self.sent.get("comment", "")

    @cached_property
    def boxes(self) -> dict[str, dict[str, Any]]:
        """The comments on lines, and the places for one, by the name of the form field."""
        return dict(_comments(self.sent))

    @cached_property
    def elsewhere(self) -> dict[str, dict[str, Any]]:
        """Those on lines that the page does not show."""
        lines = ((file.path, line) for file in self.files for _, hunk in file.hunks for line in hunk)
        shown = {f"{OF_LINES}{field_name(path, line)}" for path, line in lines}
        return {name: each for name, each in self.boxes.items() if name not in shown}

    @property
    def added(self) -> int:
        return sum(each.change.added or 0 for each in self.files)

    @property
    def removed(self) -> int:
        return sum(each.change.removed or 0 for each in self.files)


def field_name(path: str, line: DiffLine) -> str:
    side, number = line.place
    return f"{side}:{number}:{path}"


def decision_of(folder: RunFolder, question: Question, pending: list[Question], sent: Form) -> ShownDecision:
    """Read what the decision needs; ``sent``: the form as it was sent before. Raises `StorageError`."""
    situation = situation_of(folder, question.key)
    changes = situation.changes
    return ShownDecision(
        question=question,
        situation=situation,
        files=diff_files(changes, folder.redact, situation.writers) if changes is not None else [],
        at_most=worst_case_of(folder, folder.record()),
        fields=[_field(question, name, sent) for name in question.fields],
        sent=sent,
        others=[each for each in pending if each.key != question.key],
    )


def values_of(question: Question, sent: Form) -> dict[str, Any]:
    """The option, the fields and the comments on lines that a form has; what is empty, and was, is left out."""
    given = {name.removeprefix(OF_VALUES): text for name, text in sent.items() if name.startswith(OF_VALUES)}
    fields = {name: question.fields.get(name, {}) for name in given}
    values: dict[str, Any] = {
        name: from_edited(text.replace("\r\n", "\n"), fields[name])
        for name, text in given.items()
        if text or "default" in fields[name]
    }
    comments = [each for _, each in _comments(sent) if each["text"]]
    return {**values, **({COMMENTS: comments} if comments else {})}


def with_box(sent: Form) -> Form:
    """The form with place for a comment on the line that its button ``add`` names, or the fields beside it.

    Raises `UsageError` if they name no line.
    """
    name = sent.get(ADD, "")
    if name == CHOSEN:
        name = ":".join(sent.get(f"{CHOSEN}.{part}", "").strip() for part in ("side", "line", "path"))
    if not _PLACE.fullmatch(name):
        raise UsageError("A comment needs a line", "Choose a file, and give the number of one of its lines.")
    return {f"{OF_LINES}{name}": "", **sent}


def _comments(sent: Form) -> Iterator[tuple[str, dict[str, Any]]]:
    """What was written on lines, by the name of its form field."""
    for name, text in sent.items():
        found = _PLACE.fullmatch(name.removeprefix(OF_LINES)) if name.startswith(OF_LINES) else None
        if found is not None:
            yield name, {"path": found[3], "line": int(found[2]), "side": found[1], "text": text.strip()}


def _field(question: Question, name: str, sent: Form) -> Field:
    schema, sent_as = question.fields[name], f"{OF_VALUES}{name}"
    kind = kind_of_field(schema)
    value = sent.get(sent_as, to_edit(schema))
    problem = ""
    if sent_as in sent and ADD not in sent:
        problem = problem_of(question, name, from_edited(value, schema)).partition(name)[2].lstrip(": ")
    help = " · ".join(filter(None, (str(schema.get("description") or ""), in_words(schema))))
    help += ", one per line" if kind == "lines" else ""
    help += "; may stay as it is" if "default" in schema else ""
    choices = {"": "choose"} if "default" not in schema else {}
    texts = (to_edit({"default": each}) for each in schema.get("enum", [True, False]))
    choices |= {text: text for text in texts}
    drawn = {"choice": "choice", "text": "string"}.get(kind, "code")
    return Field(sent_as, name, value, drawn, help, problem=problem, choices=choices)
