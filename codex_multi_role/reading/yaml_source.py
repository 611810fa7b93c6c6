"""Files that people write: read with limits and validated against a model; every mistake has its file and place."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.yaml_loader import parse_yaml

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
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise DefinitionError(
            f"{path}:{line}:{column}: not UTF-8 text", "Save the file as UTF-8.", str(path), (line, column)
        ) from error


def load_yaml(path: Path, rewrite: Callable[[yaml.Node | None], object] = lambda _: None) -> object:
    """The content of the YAML file as JSON-shaped data (dates stay text). An empty file is an error.

    ``rewrite``: as of `parse_yaml`.

    Raises ``DefinitionError`` that begins ``file:line:column:``, or ``file:`` if the file as a whole cannot be read.
    """
    return _parse_yaml_text(read_text(path), path, rewrite)


def parse_text(text: str, path: Path) -> object:
    """The content of ``text`` from the JSON (by its suffix) or YAML file ``path``; errors as in ``load_yaml``."""
    return _parse_json_text(text, path) if path.suffix.lower() == ".json" else _parse_yaml_text(text, path)


def _parse_yaml_text(text: str, path: Path, rewrite: Callable[[yaml.Node | None], object] = lambda _: None) -> object:
    try:
        data = parse_yaml(text, rewrite)
    except yaml.YAMLError as error:
        from codex_multi_role.reading.syntax_words import yaml_problem  # imported only after a mistake

        line, column, problem, hint = yaml_problem(error)
        raise DefinitionError(f"{path}:{line}:{column}: {problem}", hint, str(path), (line, column)) from error
    if data is None:
        raise DefinitionError(f"{path}:1:1: the file is empty")
    return data


def _parse_json_text(text: str, path: Path) -> object:
    try:
        data: object = json.loads(text)
    except json.JSONDecodeError as error:
        place = (error.lineno, error.colno)
        message = f"{path}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}"
        raise DefinitionError(message, "", str(path), place) from error
    except (RecursionError, ValueError) as error:  # ValueError: a number of thousands of digits
        raise DefinitionError(f"{path}:1:1: not valid JSON: {error}") from error
    return data


def validate(model: type[ModelT], data: object, path: Path) -> ModelT:
    """``data`` of the file ``path`` as a ``model``. Raises one ``DefinitionError`` for all its mistakes."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        from codex_multi_role.reading.validation_words import problems_of  # imported only after a mistake

        raise DefinitionError.together(problems_of(model, error, data, Place(path))) from error
