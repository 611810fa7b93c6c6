"""What an entry of the report shows when it is opened, as JSON for the page.

A part is ``{title, kind, file}`` with ``text``, or with ``value`` in the shape of its ``kind``. If ``text`` is only the
beginning, ``of`` is the size of the whole in bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from codex_multi_role.presentation.story import ReportedTurn
from codex_multi_role.report.texts import Reader, Text
from codex_multi_role.run_folder import Question, TurnFolder

Part = dict[str, Any]
APPLIED = "applied_files.json"
TEXTS = ("prompt.txt", "assistant_text.txt", "items_text.md", "analysis.md", APPLIED)
PATCHES = {
    "changes.patch": "What it changed",
    "undone.patch": "Begun when it was cut short, and taken back",
    "protected.patch": "Changes to protected files, put back",
}
CALLS = "tool_calls.jsonl"
HANDOFF = "handoff.json"
FILES = (*TEXTS, HANDOFF, *PATCHES, CALLS)
MESSAGE = "## message\n"
OUTPUT = "output_tail"
IN_THE_ROW = ("status", "seconds", "recorded", "approvals", "journal_step", "snapshot", "protected")
BY_HAND = ("analysis_md", "analysis_md_path")


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
        yield _part("What it was about", "text", reader.cut(question.show), f"reviews/{question.key}.json")
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
        yield _part("What it did and said", "text", items, reader.name(path / "items_text.md"))
    same = isinstance(handoff, dict) and answer is not None and _is_handoff(answer.text, handoff)
    if answer and not same:
        yield _part("Answer", "text", answer, reader.name(answer_path))
    if handoff is not None:
        title = "Answer, which is the handoff" if same else "Handoff"
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
