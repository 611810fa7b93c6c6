"""Answers to a question with options or fields: texts become values, wrong ones are refused, defaults filled in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from codex_multi_role.errors import UsageError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.nearest import did_you_mean
from codex_multi_role.reading.schema_validation import schema_problems
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_folder.question import OPTION, REJECT, Answer, Question

BY_TIME_LIMIT = "time limit"


def complete(question: Question, answer: Answer) -> Answer:
    """``answer`` with its option, and its values as their fields want them; what it leaves out has its default.

    Raises `UsageError`, which names the option or field, if something is missing, unknown or wrong.
    """
    if not answer.approved:
        return replace(answer, option="", values={})
    given = dict(answer.values)
    option = str(given.pop(OPTION, answer.option)).strip() or _default_option(question)
    if option not in (question.options or ("",)):
        raise _wrong_option(question, option)
    for name in given.keys() - question.fields.keys():
        unknown = f'{question.key} has no field "{name}"{did_you_mean(name, [*question.fields])}'
        raise UsageError(unknown, how_to_answer(question))
    values = {name: _value(question, name, schema, given) for name, schema in question.fields.items()}
    return replace(answer, option=option, values=values)


def _value(question: Question, name: str, schema: Json, given: Json) -> object:
    if name not in given:
        if "default" in schema:
            return schema["default"]
        raise UsageError(f"{question.key}: {name} is missing", how_to_answer(question))
    value = from_text(given[name], schema) if isinstance(given[name], str) else given[name]
    if problems := schema_problems(value, schema):
        raise UsageError(f"{question.key}: {name}: {problems[0].removeprefix('$: ')}", how_to_answer(question))
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
    """The text itself if the schema allows it, otherwise the JSON value that it is; wrong ones stay texts."""
    if not schema_problems(text, schema):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def describe(name: str, schema: Mapping[str, Any]) -> str:
    """``version (string, 1.0 if left out): What to call it.``"""
    kind = " or ".join(map(_as_text, schema["enum"])) if "enum" in schema else _type_of(schema)
    default = f", {_as_text(schema['default'])} if left out" if "default" in schema else ""
    about = f": {schema['description']}" if schema.get("description") else ""
    return f"{name} ({kind}{default}){about}"


def prompts(question: Question) -> list[tuple[str, str]]:
    """What to ask a person for, line by line: the name of the option or field, and the text to show."""
    option = [(OPTION, f"{OPTION} ({' or '.join(question.options)})")] if question.options else []
    return [*option, *((name, describe(name, schema)) for name, schema in question.fields.items())]


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


def _type_of(schema: Mapping[str, Any]) -> str:
    types = schema.get("type", "text")
    return " or ".join(types) if isinstance(types, list) else str(types)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
