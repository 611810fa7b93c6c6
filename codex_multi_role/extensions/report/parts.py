"""What an entry of the report shows when it is opened, as JSON: without secrets, and cut to a common limit.

A part is ``{title, kind, file}`` with ``text``, or with ``value`` in the shape of its ``kind``. If ``text`` is only the
beginning, ``of`` is the size of the whole in bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from os.path import commonprefix
from pathlib import Path
from typing import Any

from markupsafe import Markup

from codex_multi_role.host.redaction import Redactor
from codex_multi_role.host.spelling import KEPT_IN_PAGES, printable
from codex_multi_role.presentation.pieces import ReportedTurn
from codex_multi_role.run_folder import Question, TurnFolder

Part = dict[str, Any]
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
_UNSAFE_IN_SCRIPT = "<>&\u2028\u2029"
_ESCAPES = re.compile(r'(\\["\\nrt])|\\(?:[bf]|u00[01][0-9a-f])')  # in JSON; group 1: of harmless characters


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
    yield from _text(reader, path / "prompt.txt", "Prompt")
    yield from _calls(reader, path / CALLS)
    if result.get("approvals"):
        yield {"title": "Approvals", "kind": "approvals", "value": result["approvals"]}
    yield from _answer_parts(reader, path)
    yield from _text(reader, path / "analysis.md", "Analysis")
    for name, title in PATCHES.items():
        yield from _text(reader, path / name, title, "diff", exact=True)
    if isinstance(files := reader.value(path / APPLIED), list):
        yield {"title": "Files", "kind": "files", "value": files, "file": reader.name(path / APPLIED)}
    else:
        yield from _text(reader, path / APPLIED, "Files", exact=True)
    for tests in turn.tests:
        yield from test_parts(reader, reader.folder / "tests" / f"{tests.number:03d}", f"Tests {tests.number:03d}")
    yield {"title": "Details", "kind": "details", "value": _details(result), "file": reader.name(path / "turn.json")}


def test_parts(reader: Reader, folder: Path, title: str) -> Iterator[Part]:
    """Yield the result of a test run or another check, and what the programs printed."""
    path = folder / "result.json"
    result = reader.value(path)
    if isinstance(result, dict):
        output = result.pop(OUTPUT, "")
        yield {"title": title, "kind": "tree", "value": result, "file": reader.name(path)}
        if output:
            yield _part("Output", "text", Text(str(output)), reader.name(path))
    else:
        yield from _text(reader, path, title, exact=True)


def question_parts(reader: Reader, question: Question) -> Iterator[Part]:
    """Yield what the question was about, and its answer in full."""
    if question.show:
        yield _part("Subject", "text", reader.cut(question.show), f"reviews/{question.key}.json")
    if question.answer is not None and question.answer.comment:
        comment = reader.redact(question.answer.comment)
        yield _part("Comment", "text", reader.cut(comment), f"reviews/{question.key}.json")


def _part(title: str, kind: str, text: Text, file: str) -> Part:
    cut = {} if text.of is None else {"of": text.of}
    return {"title": title, "kind": kind, "text": text.text, "file": file, **cut}


def _text(reader: Reader, path: Path, title: str, kind: str = "text", *, exact: bool = False) -> Iterator[Part]:
    if (text := reader.text(path, exact=exact)) is not None:
        yield _part(title, kind, text, reader.name(path))


def _answer_parts(reader: Reader, path: Path) -> Iterator[Part]:
    """Yield what else the turn did, then its answer and handoff; only one if the answer is nothing but the handoff."""
    answer_path = path / "assistant_text.txt"
    if (answer := reader.text(answer_path)) is None:
        answer = reader.text(answer_path := path / "delta_text.txt")
    handoff = reader.value(path / HANDOFF)
    items = reader.text(path / "items_text.md")
    if items and not (answer and _repeats(items, answer)):
        yield _part("Transcript", "text", items, reader.name(path / "items_text.md"))
    same = isinstance(handoff, dict) and answer is not None and _is_handoff(answer.text, handoff)
    if answer and not same:
        yield _part("Answer", "text", answer, reader.name(answer_path))
    if handoff is not None:
        title = "Answer (handoff)" if same else "Handoff"
        yield {"title": title, "kind": "tree", "value": handoff, "file": reader.name(path / HANDOFF)}
    else:
        yield from _text(reader, path / HANDOFF, "Handoff", exact=True)


def _repeats(items: Text, answer: Text) -> bool:
    """Whether a turn did nothing except give its answer. Both texts may be cut."""
    begins, body = items.text.startswith(MESSAGE), items.text.removeprefix(MESSAGE).strip()
    return begins and (body == answer.text.strip() or (items.of is not None and answer.text.strip().startswith(body)))


def _is_handoff(answer: str, handoff: Mapping[str, Any]) -> bool:
    with suppress(ValueError, RecursionError):
        parsed = json.loads(answer)
        return isinstance(parsed, dict) and _without_analysis(parsed) == _without_analysis(handoff)
    return False


def _without_analysis(handoff: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in handoff.items() if name not in BY_HAND}


def _calls(reader: Reader, path: Path) -> Iterator[Part]:
    """Yield the readable lines of a log; only the first ones of a long log."""
    if (text := reader.text(path)) is None:
        return
    calls = []
    for line in text.text.splitlines():
        with suppress(ValueError, RecursionError):
            calls.append(json.loads(line))
    part = {"title": "Tool calls", "kind": "calls", "value": calls, "file": reader.name(path)}
    yield part if text.of is None else {**part, "of": text.of}


def _details(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nonempty fields of ``turn.json`` that are not shown elsewhere."""
    shown = {name: value for name, value in result.items() if name not in IN_THE_ROW}
    return {name: value for name, value in shown.items() if value not in (None, "", [], {}, False)}


def embedded(value: object) -> Markup:
    """Encode ``value`` as JSON that is safe in a script element: nothing in it ends the element or begins another.

    Numbers that Python accepts but browsers do not (``NaN``, ``1e999``) become text.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(value), parse_constant=str), ensure_ascii=False)
    text = _ESCAPES.sub(r"\1", printable(text, keep=KEPT_IN_PAGES))
    for sign in _UNSAFE_IN_SCRIPT:
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)
