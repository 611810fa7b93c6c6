"""A decision as a page shows it: what the question is about, the diff, and the form as it was sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.pages.report.changes import ON_PAGE, DiffFile, DiffLine, diff_files
from codex_multi_role.extensions.pages.report.flow_picture import worst_case_of
from codex_multi_role.extensions.pages.serve.forms import Field, Form
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
        lines = ((file.change.path, line) for file in self.files for _, hunk in file.hunks for line in hunk)
        shown = {f"{OF_LINES}{field_name(path, line)}" for path, line in lines}
        return {name: each for name, each in self.boxes.items() if name not in shown}


def field_name(path: str, line: DiffLine) -> str:
    """The line that a comment is on: its side and number, and the file."""
    side, number = (AFTER, line.new) if line.new is not None else (BEFORE, line.old)
    return f"{side}:{number}:{path}"


def decision_of(folder: RunFolder, question: Question, pending: list[Question], sent: Form) -> ShownDecision:
    """Read what the decision needs; ``sent``: the form as it was sent before. Raises `StorageError`."""
    situation = situation_of(folder, question.key)
    changes = situation.changes
    return ShownDecision(
        question=question,
        situation=situation,
        files=diff_files(changes, folder.redact, situation.writers, ON_PAGE) if changes is not None else [],
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
