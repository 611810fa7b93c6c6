"""The check ``research_plan``: whether there are enough questions, and which to research, in which order."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, JsonValue

from codex_multi_role.checks.check_options import CheckOptions, read_options
from codex_multi_role.checks.contract import CheckContext, declare_check, no_time
from codex_multi_role.checks.output_files import write_result
from codex_multi_role.reading.json_types import Json

LONGEST_TOPIC = 500
LAST = 1_000_000
"""The rank of a question without a priority."""
_WORDS = {"critical": 1, "highest": 1, "high": 1, "medium": 2, "normal": 2, "low": 3, "lowest": 4}
_LETTERS = re.compile(r"\w+")
Count = Annotated[int, Field(ge=1, le=100)]


class ResearchPlanOptions(CheckOptions):
    """``least`` and ``most``: the limits on the number of questions."""

    sub_questions: list[JsonValue] = Field(description="a list of mappings, each with text and priority")
    least: Count = Field(description="a number from 1 to 100")
    most: Count = Field(description="a number from 1 to 100")


@declare_check(options=ResearchPlanOptions, max_seconds=no_time, read_only=True)
def research_plan(context: CheckContext) -> dict[str, object]:
    """Return ``{status: planned|too few, problems, questions, topics, cut: [text]}``, also as ``result.json``.

    A question is ``{id: Q1, text, priority}``, as a topic ``{question: Q1, asked: text, text, depth: 0, priority}``. A
    priority is a number, 1 the first, or a word such as high. Equal questions are one. The most important come first;
    those beyond ``most`` are ``cut``. Raises UsageError.
    """
    options = read_options(ResearchPlanOptions, context, "research_plan")
    different: dict[str, Json] = {}
    for question in map(_question, options.sub_questions):
        different.setdefault(topic_key(question["text"]), question)
    in_order = sorted((each for key, each in different.items() if key), key=lambda each: each["priority"])
    kept, cut = in_order[: options.most], in_order[options.most :]
    questions = [{"id": f"Q{number}", **each} for number, each in enumerate(kept, 1)]
    problems = []
    if len(questions) < options.least:
        problems = [f"{len(questions)} different questions, {options.least} to {options.most} are wanted"]
        questions = []
    status = "too few" if problems else "planned"
    fields: Json = {"problems": problems, "questions": questions, "topics": [_topic(each) for each in questions]}
    return write_result(context, {"status": status, **fields, "cut": [each["text"] for each in cut]})


def topic_key(text: str) -> str:
    """A key that ignores case, spaces and punctuation."""
    return " ".join(_LETTERS.findall(text.casefold()))


def _topic(question: Json) -> Json:
    fields = {"question": question["id"], "asked": question["text"], "text": question["text"]}
    return {**fields, "depth": 0, "priority": question["priority"]}


def _question(given: JsonValue) -> Json:
    if not isinstance(given, dict):
        return {"text": "", "priority": LAST}
    text = given.get("text")
    shortened = " ".join(text.split())[:LONGEST_TOPIC] if isinstance(text, str) else ""
    return {"text": shortened, "priority": _priority(given.get("priority"))}


def _priority(given: JsonValue) -> float:
    if isinstance(given, str):
        word = given.strip().lower()
        return int(word) if word.isascii() and word.isdigit() and len(word) < 6 else _WORDS.get(word, LAST)
    return LAST if given is None or isinstance(given, bool | dict | list) else given
