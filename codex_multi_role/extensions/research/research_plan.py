"""The check ``research_plan``: whether there are enough questions, and which to research, in which order."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, ResultPart, declare_check, no_time
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


class PlannedQuestion(ResultPart):
    """``priority`` is a number, 1 the first."""

    id: str
    text: str
    priority: int | float


class Topic(ResultPart):
    """A question's ``text``, to begin with. ``question`` is its id and ``asked`` its text."""

    question: str
    asked: str
    text: str
    depth: int
    priority: int | float


class ResearchPlanResult(CheckResult):
    """The most important ``questions`` come first; the texts of those beyond ``most`` are ``cut``."""

    bad = ("too few",)

    status: Literal["planned", "too few"]
    problems: list[str]
    questions: list[PlannedQuestion]
    topics: list[Topic]
    cut: list[str]


@declare_check(options=ResearchPlanOptions, result=ResearchPlanResult, max_seconds=no_time, read_only=True)
def research_plan(context: CheckContext) -> ResearchPlanResult:
    """Select the questions; write ``result.json``.

    A given priority is a number or a word such as high. Equal questions are one. Raises UsageError.
    """
    options = context.read_options(ResearchPlanOptions, "research_plan")
    different: dict[str, Json] = {}
    for question in map(_question, options.sub_questions):
        different.setdefault(topic_key(question["text"]), question)
    in_order = sorted((each for key, each in different.items() if key), key=lambda each: each["priority"])
    kept, cut = in_order[: options.most], in_order[options.most :]
    questions = [PlannedQuestion(id=f"Q{number}", **each) for number, each in enumerate(kept, 1)]
    problems = []
    if len(questions) < options.least:
        problems = [f"{len(questions)} different questions, {options.least} to {options.most} are required"]
        questions = []
    return ResearchPlanResult(
        status="too few" if problems else "planned",
        problems=problems,
        questions=questions,
        topics=[_topic(each) for each in questions],
        cut=[each["text"] for each in cut],
    )


def topic_key(text: str) -> str:
    """A key that ignores case, spaces and punctuation."""
    return " ".join(_LETTERS.findall(text.casefold()))


def _topic(question: PlannedQuestion) -> Topic:
    text = question.text
    return Topic(question=question.id, asked=text, text=text, depth=0, priority=question.priority)


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
