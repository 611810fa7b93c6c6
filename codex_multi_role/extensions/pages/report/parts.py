"""What an entry of a run's page shows when it is opened: without secrets, and cut to a common limit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from os.path import commonprefix
from pathlib import Path
from typing import Any

from markupsafe import Markup

from codex_multi_role.extensions.pages.report.values import (
    diff_html,
    markdown_as_html,
    table_html,
    text_html,
    value_html,
)
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.pieces import ReportedTurn
from codex_multi_role.run_folder import Question, TurnFolder

APPLIED = "applied_files.json"
TEXTS = ("prompt.txt", "assistant_text.txt", "items_text.md", "analysis.md", APPLIED)
PATCHES = {
    "changes.patch": "Changes",
    "undone.patch": "Changes of the interrupted turn, undone",
    "protected.patch": "Changes to protected files, restored",
}
CALLS = "tool_calls.jsonl"
HANDOFF = "handoff.json"
FILES = (*TEXTS, HANDOFF, *PATCHES, CALLS)
MESSAGE = "## message\n"
OUTPUT = "output_tail"
IN_THE_ROW = ("status", "seconds", "recorded", "approvals", "journal_step", "snapshot", "protected")
BY_HAND = ("analysis_md", "analysis_md_path")
ALL_BYTES = 8_000_000
"""Total size of a run's texts above which they are cut shorter: with JSON's overhead, the page stays below 15 MB."""
LONGEST, SHORTEST = 200_000, 4_000
"""Maximum length of a text, and the length to which texts are never cut, however many there are."""
MARGIN = 8_192
"""Characters read beyond a cut, so that a secret across the cut is recognized."""
OPEN_AT_FIRST = 1_500
"""Maximum length of a prompt that is open at first."""


@dataclass(frozen=True)
class Part:
    """``file``: where it is in the run's folder. ``length``: of a text, in characters.

    ``of``: the size of the whole in bytes, if only its beginning is shown. ``id``: its own address, if it has one.
    """

    title: str
    html: Markup
    file: str = ""
    length: int | None = None
    of: int | None = None
    is_open: bool = True
    id: str = ""


def cut_length(sizes: Iterable[int]) -> int:
    """Return the length to which texts of these sizes are cut, so that together they stay within `ALL_BYTES`."""
    left, ordered = ALL_BYTES, sorted(sizes)
    for position, size in enumerate(ordered):
        share = left // (len(ordered) - position)
        if size > share:
            return max(SHORTEST, min(LONGEST, share))
        left -= size
    return LONGEST


@dataclass(frozen=True)
class Text:
    """``of``: size of the whole in bytes, if this is only the beginning."""

    text: str
    of: int | None = None


@dataclass(frozen=True)
class Reader:
    """Reads the files of the run in ``folder``. Exact files are redacted here, because a report is passed on.

    Texts for people are already stored without secrets.
    """

    folder: Path
    redact: Redactor
    cut_at: int

    def text(self, path: Path, *, exact: bool = False) -> Text | None:
        """Read a file; None if it is not found, unreadable or empty. ``exact``: it is stored with its secrets."""
        try:
            size = path.stat().st_size
            with path.open(encoding="utf-8", errors="replace", newline="") as file:
                read = file.read(self.cut_at + MARGIN)
        except OSError:
            return None
        if len(read) <= self.cut_at:
            return Text(self.redact(read) if exact else read) if read else None
        beginning = read[: self.cut_at]
        if exact:  # what was read beyond the cut shows that a secret lies across it
            beginning = commonprefix([self.redact(beginning), self.redact(read)])  # noqa: RUF071 - of characters
        return Text(beginning, size)

    def cut(self, text: str) -> Text:
        """Cut a text that is stored in one file with others."""
        whole = len(text.encode("utf-8", "replace"))
        return Text(text) if len(text) <= self.cut_at else Text(text[: self.cut_at], whole)

    def value(self, path: Path, longest: int | None = None) -> Any:  # noqa: ANN401 - any JSON value
        """Read a JSON file without secrets; None if it is unreadable or too long to be shown whole.

        ``longest``: the limit in bytes if only a little of it is shown.
        """
        try:
            if path.stat().st_size > (longest or self.cut_at):
                return None
            return self.redact.within(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError):
            return None

    def name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()


def turn_parts(reader: Reader, turn: ReportedTurn, folder: TurnFolder, result: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of a turn in chronological order; ``result`` is its ``turn.json``, redacted."""
    path = folder.path
    for prompt in _text(reader, path / "prompt.txt", "Prompt"):
        yield replace(prompt, is_open=(prompt.length or 0) <= OPEN_AT_FIRST)
    yield from _calls(reader, path / CALLS)
    if approvals := _objects(result.get("approvals")):
        rows = ((each.get("decision"), each.get("method"), each.get("detail")) for each in approvals)
        yield Part("Approvals", table_html(("decision", "asked for", "what"), rows))
    yield from _answer_parts(reader, path)
    yield from _text(reader, path / "analysis.md", "Analysis", _prose)
    for name, title in PATCHES.items():
        yield from _text(reader, path / name, title, diff_html, exact=True)
    if isinstance(files := reader.value(path / APPLIED), list):
        yield Part("Files", table_html(("file", "result", "bytes"), _file_rows(files)), reader.name(path / APPLIED))
    else:
        yield from _text(reader, path / APPLIED, "Files", exact=True)
    for tests in turn.tests:
        number = f"{tests.number:03d}"
        for place, part in enumerate(test_parts(reader, reader.folder / "tests" / number, f"Tests {number}")):
            yield part if place else replace(part, id=f"tests-{number}")
    yield Part("Details", value_html(_details(result)), reader.name(path / "turn.json"), is_open=False)


def test_parts(reader: Reader, folder: Path, title: str) -> Iterator[Part]:
    """Yield the result of a test run or another check, and what the programs printed."""
    path = folder / "result.json"
    result = reader.value(path)
    if isinstance(result, dict):
        output = result.pop(OUTPUT, "")
        yield Part(title, value_html(result), reader.name(path))
        if output:
            yield _part("Output", Text(str(output)), reader.name(path))
    else:
        yield from _text(reader, path, title, exact=True)


def question_parts(reader: Reader, question: Question) -> Iterator[Part]:
    """Yield what the question was about, and its answer in full."""
    if question.show:
        yield _part("Subject", reader.cut(question.show), f"reviews/{question.key}.json")
    if question.answer is not None and question.answer.comment:
        comment = reader.redact(question.answer.comment)
        yield _part("Comment", reader.cut(comment), f"reviews/{question.key}.json")


def _prose(text: str) -> Markup:
    """An answer in Markdown, or in JSON."""
    if text.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            return value_html(json.loads(text))
        return text_html(text)
    return Markup('<div class="answer" tabindex="0">{}</div>').format(markdown_as_html(text))


def _part(title: str, text: Text, file: str, shown: Callable[[str], Markup] = text_html) -> Part:
    return Part(title, shown(text.text), file, len(text.text), text.of)


def _text(
    reader: Reader, path: Path, title: str, shown: Callable[[str], Markup] = text_html, *, exact: bool = False
) -> Iterator[Part]:
    if (text := reader.text(path, exact=exact)) is not None:
        yield _part(title, text, reader.name(path), shown)


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _file_rows(files: list[object]) -> Iterator[tuple[Markup, str, object]]:
    for each in _objects(files):
        how = ": ".join(str(each[name]) for name in ("status", "reason") if each.get(name))
        yield Markup("<code>{}</code>").format(printable(str(each.get("path") or ""))), how, each.get("bytes")


def _answer_parts(reader: Reader, path: Path) -> Iterator[Part]:
    """Yield what else the turn did, then its answer and handoff; only one if the answer is nothing but the handoff."""
    answer_path = path / "assistant_text.txt"
    if (answer := reader.text(answer_path)) is None:
        answer = reader.text(answer_path := path / "delta_text.txt")
    handoff = reader.value(path / HANDOFF)
    items = reader.text(path / "items_text.md")
    if items and not (answer and _repeats(items, answer)):
        yield _part("Transcript", items, reader.name(path / "items_text.md"))
    same = isinstance(handoff, dict) and answer is not None and _is_handoff(answer.text, handoff)
    if answer and not same:
        yield _part("Answer", answer, reader.name(answer_path), _prose)
    if handoff is not None:
        title = "Answer (handoff)" if same else "Handoff"
        yield Part(title, value_html(handoff), reader.name(path / HANDOFF))
    else:
        yield from _text(reader, path / HANDOFF, "Handoff", exact=True)


def _repeats(items: Text, answer: Text) -> bool:
    """Whether a turn did nothing except give its answer. Both texts may be cut."""
    begins, body = items.text.startswith(MESSAGE), items.text.removeprefix(MESSAGE).strip()
    return begins and (body == answer.text.strip() or (items.of is not None and answer.text.strip().startswith(body)))


def _is_handoff(answer: str, handoff: Mapping[str, Any]) -> bool:
    with suppress(ValueError, RecursionError):
        parsed = json.loads(answer)
        return isinstance(parsed, dict) and _said(parsed) == _said(handoff)
    return False


def _said(handoff: Mapping[str, Any]) -> dict[str, Any]:
    """Its fields without those that nobody filled in, and the analysis, which is a part of its own."""
    return {name: value for name, value in handoff.items() if name not in BY_HAND and value is not None}


def _calls(reader: Reader, path: Path) -> Iterator[Part]:
    """Yield the readable lines of a log; only the first ones of a long log."""
    if (text := reader.text(path)) is None:
        return
    calls = []
    for line in text.text.splitlines():
        with suppress(ValueError, RecursionError):
            calls.append(json.loads(line))
    yield Part("Tool calls", _calls_html(_objects(calls)), reader.name(path), of=text.of)


def _calls_html(calls: list[dict[str, Any]]) -> Markup:
    chips = {
        True: Markup('<span class="chip good">answered</span>'),
        False: Markup('<span class="chip bad">failed</span>'),
    }
    call = Markup("<dt><b>{}</b> {}</dt><dd>{}{}</dd>")
    shown = (
        call.format(
            printable(str(each.get("tool") or "")),
            chips[bool(each.get("success"))],
            value_html(each.get("arguments")),
            text_html(str(each.get("text") or "")),
        )
        for each in calls
    )
    return Markup('<dl class="calls">{}</dl>').format(Markup("").join(shown))


def _details(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nonempty fields of ``turn.json`` that are not shown elsewhere."""
    shown = {name: value for name, value in result.items() if name not in IN_THE_ROW}
    return {name: value for name, value in shown.items() if value not in (None, "", [], {}, False)}
