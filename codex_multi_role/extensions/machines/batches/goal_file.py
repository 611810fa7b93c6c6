"""Reads a goal file: JSON lines. Every problem in it is found before anything starts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.extensions.machines.batches.goal_line import GoalKeys, GoalLine
from codex_multi_role.reading.json_files import refuse_constant
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.validation_words import problems_of

MAX_LINE_BYTES = 1 << 20
MAX_FILE_BYTES = 256 << 20
MAX_GOALS = 100_000
MAX_PROBLEMS = 100
MAX_NUMBER = 2**53
"""Beyond it, JSON is not exact."""
_UNUSABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Goal:
    """A line of the goal file ``file`` with its number. ``id``: its own, or the number."""

    file: str
    number: int
    line: GoalKeys

    @property
    def id(self) -> str:
        return self.line.id or str(self.number)

    def problem(self, message: str, hint: str = "") -> DefinitionError:
        return problem_at(self.file, self.number, message, hint)


def problem_at(file: str, number: int, message: str, hint: str = "") -> DefinitionError:
    return DefinitionError(f"{file}:{number}: {message}", hint, file, (number,))


class GoalProblems:
    """Collects what is wrong in a goal file, up to `MAX_PROBLEMS`."""

    def __init__(self) -> None:
        self._found: list[DefinitionError] = []
        self._more = 0

    def add(self, error: DefinitionError) -> None:
        room = MAX_PROBLEMS - len(self._found)
        self._found += error.problems[:room]
        self._more += len(error.problems[room:])

    def raise_found(self) -> None:
        """Raise one `DefinitionError` for all that were added, if there are any."""
        if self._more:
            self._found[-1].hint = f"{self._found[-1].hint} {self._more:,} more problems are not shown.".strip()
            self._more = 0
        if self._found:
            raise DefinitionError.together(self._found)


def read_goals(stream: IO[bytes], file: str) -> list[Goal]:
    """The goals in ``stream``, in order; ``file`` is its name in messages. Raises `DefinitionError`, `UsageError`."""
    problems, goals, first = GoalProblems(), list[Goal](), dict[str, int]()
    for number, text in _lines(stream, file):
        try:
            goal = Goal(file, number, _parsed(text, file, number))
        except DefinitionError as error:
            problems.add(error)
            continue
        if (before := first.setdefault(goal.id, number)) != number:
            problems.add(goal.problem(f'the id "{goal.id}" is already that of line {before}'))
        if len(goals) == MAX_GOALS:
            raise UsageError(f"{file}: more than {MAX_GOALS:,} goals", "Split the file into several batches.")
        goals.append(goal)
    problems.raise_found()
    if not goals:
        raise UsageError(f"{file}: no goals", 'Write one JSON object per line, such as {"goal": "Add a test"}.')
    return goals


def _lines(stream: IO[bytes], file: str) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers, without empty ones and comments. Raises `UsageError`."""
    number = total = 0
    while text := stream.readline(MAX_LINE_BYTES + 1):  # waits: for a file, or what a person pipes in
        number, total = number + 1, total + len(text)
        if len(text) > MAX_LINE_BYTES:
            raise problem_at(file, number, f"longer than {MAX_LINE_BYTES:,} bytes")
        if total > MAX_FILE_BYTES:
            raise UsageError(f"{file}: more than {MAX_FILE_BYTES:,} bytes", "Split the file into several batches.")
        text = text.removeprefix(b"\xef\xbb\xbf") if number == 1 else text
        if text.strip() and not text.lstrip().startswith(b"#"):
            yield number, text


def _parsed(text: bytes, file: str, number: int) -> GoalKeys:
    try:
        data = json.loads(text.decode(), parse_constant=refuse_constant, object_pairs_hook=_without_repeated_keys)
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]} (column {error.colno})"
        raise problem_at(file, number, message, 'A goal is a JSON object on one line: {"goal": "…"}.') from error
    except (ValueError, RecursionError) as error:  # also UnicodeDecodeError
        raise problem_at(file, number, f"not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise problem_at(file, number, "must be a JSON object", 'Such as {"goal": "Add a test"}.')
    if unusable := [problem_at(file, number, each) for each in _unusable(data)]:
        raise DefinitionError.together(unusable)
    try:
        return GoalLine.model_validate(data)
    except ValidationError as error:
        place = Place(Path(f"{file}:{number}"))  # not a file: its messages then have no other position
        found = problems_of(GoalLine, error, data, place)
        raise DefinitionError.together(
            DefinitionError(str(each), each.hint, file, (number,)) for each in found
        ) from error


def _unusable(value: object, place: str = "") -> Iterator[str]:
    """What JSON can say, but no process can be given, or no file and no queue can store."""
    if isinstance(value, str) and (found := _UNUSABLE.search(value)):
        what = "a NUL character" if found[0] == "\0" else "half of a surrogate pair"
        yield f"{place or 'a key'}: contains {what}"
    elif isinstance(value, int | float) and abs(value) > MAX_NUMBER:
        yield f"{place}: must be at most {MAX_NUMBER:,}"
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _unusable(each, f"{place}[{index}]")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _unusable(key)
            yield from _unusable(each, f"{place}.{key}".removeprefix("."))


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(name for index, (name, _) in enumerate(pairs) if name in dict(pairs[:index]))
        raise ValueError(f'the key "{repeated}" is given twice')
    return found
