"""One question to a person, and its answer: texts become values, wrong ones are refused, defaults filled in."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from textwrap import shorten
from typing import Any, Literal

from codex_multi_role.errors import UsageError
from codex_multi_role.option import as_typed
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.nearest import did_you_mean
from codex_multi_role.reading.schema_validation import schema_problems
from codex_multi_role.run_folder.events import now

APPROVE, REJECT = "approve", "reject"
"""Answers after a time limit, besides an option."""
OPTION, COMMENTS = "option", "comments"
"""Names among the values of an answer besides those of fields: of the chosen option, and of `COMMENTS_SCHEMA`."""
BEFORE, AFTER = "before", "after"
COMMENTS_SCHEMA: Json = {
    "type": "array",
    "maxItems": 500,
    "items": {
        "type": "object",
        "required": ["path", "line", "text"],
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "line": {"type": "integer", "minimum": 1},
            "side": {"enum": [BEFORE, AFTER]},
            "text": {"type": "string", "pattern": "\\S"},
            "code": {"type": "string"},
        },
        "additionalProperties": False,
    },
}
"""Comments on lines of what changed since the last decision: ``side`` is `AFTER` unless given, ``code`` the line."""


def user_name() -> str:
    """The user of this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # the user id has no name; which error depends on the version
        return f"user {os.getuid()}"


@dataclass(frozen=True)
class Answer:
    """``by``: this process's user unless given, ``--yes`` or ``time limit``. ``at``: ISO 8601, UTC.

    ``values``: those of the fields; given by a person, also the option and the comments. ``comments``: those on lines,
    as `COMMENTS_SCHEMA` has them.
    """

    approved: bool
    comment: str = ""
    by: str = field(default_factory=user_name)
    at: str = field(default_factory=now)
    option: str = ""
    values: Json = field(default_factory=dict)
    comments: list[Json] = field(default_factory=list)

    def as_output(self) -> Json:
        """What templates see of the step: the fields, the option, and the rest of the answer."""
        own = {
            "approved": self.approved,
            "comment": self.comment,
            "by": self.by,
            "at": self.at,
            COMMENTS: self.comments,
        }
        return {**self.values, **({OPTION: self.option} if self.option else {}), **own}


@dataclass(frozen=True)
class Question:
    """``show``: what the decision is about. ``default`` is the answer after ``time_limit_seconds``.

    ``options``: one of them is chosen. ``fields``: the JSON Schemas of the values to give, by name.

    ``key`` is the asking unit's: ``<step>.<visit>``, with the item's index, below the calling step. A role that asks
    during its turn needs ``words``, the answer's comment; the key is then the turn's.
    """

    key: str
    question: str
    show: str
    asked_at: str
    time_limit_seconds: float | None
    default: str | None
    words: bool = False
    answer: Answer | None = None
    options: list[str] = field(default_factory=list)
    fields: dict[str, Json] = field(default_factory=dict)

    @property
    def seconds_left(self) -> float | None:
        """Until the default applies, 0 from then on; None without a time limit. By the wall clock."""
        if self.time_limit_seconds is None:
            return None
        passed = datetime.now(UTC) - datetime.fromisoformat(self.asked_at)
        return max(0.0, self.time_limit_seconds - passed.total_seconds())

    @property
    def out_of_time(self) -> bool:
        return self.seconds_left == 0

    def changes(self, other: Question) -> list[str]:
        """In what they differ; without a difference, an answer to the other one counts for this one."""
        return [key for key in ("question", "show", "options", "fields") if getattr(self, key) != getattr(other, key)]


AskPerson = Callable[[Question, Callable[[], bool]], Answer | None]
"""Asks a person: ``ask(question, is_over)``. None: nobody answered, or ``is_over()`` ended the wait."""


BY_TIME_LIMIT = "time limit"


def complete(question: Question, answer: Answer) -> Answer:
    """``answer`` with its option, and its values as their fields want them; what it leaves out has its default.

    Raises `UsageError`, which names the option or field, if something is missing, unknown or wrong.
    """
    given = dict(answer.values)
    comments = _value(question, COMMENTS, COMMENTS_SCHEMA, {COMMENTS: answer.comments, **given})
    answer = replace(answer, comments=[{"side": AFTER, **each} for each in comments])
    given.pop(COMMENTS, None)
    if not answer.approved:
        return replace(answer, option="", values={})
    option = str(given.pop(OPTION, answer.option)).strip() or _default_option(question)
    if option not in (question.options or ("",)):
        raise _wrong_option(question, option)
    for name in given.keys() - question.fields.keys():
        unknown = f'{question.key} has no field "{name}"{did_you_mean(name, [*question.fields])}'
        raise UsageError(unknown, how_to_answer(question))
    values = {name: _value(question, name, schema, given) for name, schema in question.fields.items()}
    return replace(answer, option=option, values=values)


def _value(question: Question, name: str, schema: Json, given: Json) -> Any:  # noqa: ANN401 - as the schema says
    if name not in given:
        if "default" in schema:
            return schema["default"]
        raise UsageError(f"{question.key}: {name} is missing", how_to_answer(question))
    value = from_text(given[name], schema) if isinstance(given[name], str) else given[name]
    if problems := schema_problems(value, schema):
        raise UsageError(f"{question.key}: {name}{problems[0].removeprefix('$')}", how_to_answer(question))
    return value


def accept(question: Question, by: str) -> Answer | None:
    """The answer that approves with all declared defaults; None if one is missing."""
    try:
        return complete(question, Answer(True, "", by, now()))
    except UsageError:
        return None


def at_time_limit(question: Question) -> Answer:
    """What counts once the time limit has passed."""
    accepted = accept(question, BY_TIME_LIMIT) if question.default not in (None, REJECT) else None
    return accepted or Answer(False, "", BY_TIME_LIMIT, now())


def from_text(text: str, schema: Mapping[str, Any]) -> object:
    """The text itself if the schema allows it, otherwise the JSON value that it is; wrong ones stay texts.

    A list or an object instead of a default that is one is a value.
    """
    try:
        value = json.loads(text)
    except ValueError:
        return text
    is_as_default = isinstance(value, list | dict) and isinstance(schema.get("default"), list | dict)
    takes_text = not is_as_default and not schema_problems(text, schema)
    meant_as_text = "string" in _types_of(schema) and schema_problems(value, schema)  # such as 12 for a pattern
    return text if takes_text or meant_as_text else value


def describe(name: str, schema: Mapping[str, Any]) -> str:
    """``version (string, 1.0 if left out): What to call it.``"""
    kind = " or ".join(map(as_typed, schema["enum"])) if "enum" in schema else in_words(schema)
    default = f", {shorten(as_typed(schema['default']), 500)} if left out" if "default" in schema else ""
    about = f": {schema['description']}" if schema.get("description") else ""
    return f"{name} ({kind}{default}){about}"


RULES = {
    "pattern": "matches {}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}


def in_words(schema: Mapping[str, Any]) -> str:
    """``string, at least 3 characters``: the type, and the rules that a person can follow."""
    return ", ".join([" or ".join(_types_of(schema)), *(RULES[k].format(schema[k]) for k in RULES if k in schema)])


def prompts(question: Question) -> list[tuple[str, str]]:
    """What to ask a person for, line by line: the name of the option or field, and the text to show."""
    option = [(OPTION, f"{OPTION} ({' or '.join(question.options)})")] if question.options else []
    return [*option, *((name, describe(name, schema)) for name, schema in question.fields.items())]


def kind_of_field(schema: Mapping[str, Any]) -> Literal["choice", "lines", "json", "text"]:
    """How a person gives the value; as ``lines`` if these show all of a list."""
    default, kind = schema.get("default", ()), schema.get("type")
    if "enum" in schema or kind == "boolean":
        return "choice"
    is_list = (
        kind == "array" and isinstance(default, list | tuple) and (schema.get("items") or {}).get("type") == "string"
    )
    if is_list and all(isinstance(each, str) and each.isprintable() and each == each.strip() != "" for each in default):
        return "lines"
    return "json" if kind in ("array", "object") or isinstance(default, list | dict) else "text"


def to_edit(schema: Mapping[str, Any]) -> str:
    """The default as a person edits it; JSON with characters that nobody sees has escapes."""
    default = schema.get("default", "")
    if kind_of_field(schema) == "lines":
        return "\n".join(default)
    is_plain = as_typed(default).isprintable()
    return default if isinstance(default, str) else json.dumps(default, ensure_ascii=not is_plain, indent=2)


def from_edited(text: str, schema: Mapping[str, Any]) -> str:
    """What a person leaves of it, as `complete` reads it."""
    if kind_of_field(schema) == "lines":
        return json.dumps([line.strip() for line in text.splitlines() if line.strip()])
    return text.strip() or "[]" if kind_of_field(schema) == "json" else text


def problem_of(question: Question, name: str, text: str) -> str:
    """Why ``text`` is not a valid value of the option or field; empty if it is. An empty ``text`` takes the default."""
    alone = replace(question, options=[], fields={name: question.fields[name]} if name in question.fields else {})
    if name == OPTION:
        alone = replace(question, fields={})
    try:
        complete(alone, Answer(True, "", "", "", values={name: text} if text else {}))
    except UsageError as error:
        return str(error)
    return ""


def how_to_answer(question: Question) -> str:
    """Which options and fields the question has, in words; empty without any."""
    options = f"Options: {', '.join(question.options)}." if question.options else ""
    fields = f"Fields: {'; '.join(describe(*each) for each in question.fields.items())}." if question.fields else ""
    return f"{options} {fields}".strip()


def example(question: Question) -> list[str]:
    """The arguments of `answer` for what has no default: ``option=ship``, ``version=VALUE``."""
    option = [f"{OPTION}={question.options[0]}"] if question.options and not _default_option(question) else []
    return [*option, *(f"{name}=VALUE" for name, schema in question.fields.items() if "default" not in schema)]


def _default_option(question: Question) -> str:
    return question.default if question.default in question.options and question.default else ""


def _wrong_option(question: Question, option: str) -> UsageError:
    if not question.options:
        return UsageError(f"{question.key} has no options", how_to_answer(question))
    given = f'"{option}" is not an option of {question.key}' if option else f"{question.key} needs an option"
    return UsageError(f"{given}{did_you_mean(option, [*question.options])}", how_to_answer(question))


def _types_of(schema: Mapping[str, Any]) -> list[str]:
    types = schema.get("type", "text")
    return types if isinstance(types, list) else [str(types)]
