"""Files that people write: read with limits and validated against a model; every mistake has its file and place."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.yaml_loader import parse_yaml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MAX_BYTES = 1024 * 1024
ModelT = TypeVar("ModelT", bound=BaseModel)


def read_text(path: Path) -> str:
    """The UTF-8 text of a regular file of at most ``MAX_BYTES``. Raises ``DefinitionError``."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise DefinitionError(f"{path}: cannot be read: not a regular file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DefinitionError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # worded differently by each version of Python
        raise DefinitionError(f"{path}: cannot be read: embedded null byte") from error
    if len(data) > MAX_BYTES:
        raise DefinitionError(f"{path}: cannot be read: larger than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DefinitionError(f"{path}: line {line}: not UTF-8 text", "Save the file as UTF-8.") from error


def load_yaml(path: Path) -> object:
    """The content of the YAML file as JSON-shaped data (dates stay text). An empty file is an error.

    Raises ``DefinitionError`` that begins ``file: line N:``, or ``file:`` if the file as a whole cannot be read.
    """
    return _parse_yaml_text(read_text(path), path)


def parse_text(text: str, path: Path) -> object:
    """The content of ``text`` from the JSON (by its suffix) or YAML file ``path``; errors as in ``load_yaml``."""
    return _parse_json_text(text, path) if path.suffix.lower() == ".json" else _parse_yaml_text(text, path)


def _parse_yaml_text(text: str, path: Path) -> object:
    try:
        data = parse_yaml(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DefinitionError(f"{path}: line {mark.line + 1 if mark else 1}: {error.problem}") from error
    except yaml.YAMLError as error:  # a character that YAML forbids; libyaml does not report its line
        raise DefinitionError(f"{path}: line 1: {' '.join(str(error).split())}") from error
    if data is None:
        raise DefinitionError(f"{path}: line 1: the file is empty")
    return data


def _parse_json_text(text: str, path: Path) -> object:
    try:
        data: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise DefinitionError(f"{path}: line {error.lineno}: {error.msg}") from error
    except (RecursionError, ValueError) as error:  # ValueError: a number of thousands of digits
        raise DefinitionError(f"{path}: line 1: {error}") from error
    return data


def validate(model: type[ModelT], data: object, path: Path) -> ModelT:
    """``data`` of the file ``path`` as a ``model``.

    Raises one ``DefinitionError`` that begins ``file: key.path:``. Unknown keys are first, because a key that seems to
    be missing is often misspelt; further mistakes are counted.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _definition_error(model, _relevant_first(error), path) from error


def key_path(location: tuple[int | str, ...]) -> str:
    """``("roles", 1, "prompt_flags")`` as ``roles[1].prompt_flags``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if part != "[key]")
    return text.removeprefix(".")


def line_of(path: Path, location: tuple[int | str, ...]) -> int:
    """The line of a value in a YAML file that has been loaded before; 1 if it is not found."""
    node = yaml.compose(read_text(path), Loader=yaml.CSafeLoader)
    for part in location:
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
        else:
            return 1
    return node.start_mark.line + 1 if node is not None else 1


def _relevant_first(error: ValidationError) -> list[ErrorDetails]:
    """Unknown keys first. Pydantic calls a list too short if all its items are invalid; then only the items matter."""
    found = error.errors(include_url=False)
    parents = {detail["loc"][:depth] for detail in found for depth in range(len(detail["loc"]))}
    telling = [detail for detail in found if detail["type"] != "too_short" or detail["loc"] not in parents]
    return sorted(telling, key=lambda detail: detail["type"] != "extra_forbidden")


def _definition_error(model: type[BaseModel], found: list[ErrorDetails], path: Path) -> DefinitionError:
    from codex_multi_role.reading.validation_words import problem_and_hint  # imported only after a mistake

    problem, hint = problem_and_hint(model, found[0])
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return DefinitionError(f"{path}: {key_path(found[0]['loc']) or 'line 1'}: {problem}{more}", hint)
