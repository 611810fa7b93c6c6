"""Data of a program or a role, as JSON or YAML: limited in size, and never more than JSON can represent."""

from __future__ import annotations

import json

import yaml

from codex_multi_role.errors import UsageError
from codex_multi_role.reading.yaml_loader import parse_yaml
from codex_multi_role.workspace import PathRefused, Workspace

MAX_DOCUMENT_BYTES = 1024 * 1024
MAX_LEVELS = 64
_TOO_DEEP = f"nested more than {MAX_LEVELS} levels deep"


def read_document(workspace: Workspace, relative: str, option: str) -> str:
    """The text of a file of the workspace, of at most ``MAX_DOCUMENT_BYTES``.

    ``option`` names the setting in messages, such as ``check schema: file``. Raises UsageError for a refused path,
    ValueError with the reason for a file that cannot be read.
    """
    try:
        path = workspace.resolve_inside(relative)
        with path.open("rb") as file:
            data = file.read(MAX_DOCUMENT_BYTES + 1)
    except PathRefused as error:
        raise UsageError(
            f"{option}: {error.reason} {relative!r}", "Name a file of the workspace, relative to it."
        ) from error
    except OSError as error:
        raise ValueError(f"{relative}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_DOCUMENT_BYTES:
        raise ValueError(f"{relative}: cannot be read: larger than {MAX_DOCUMENT_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{relative}: line {line}: not UTF-8 text") from error


def parse_document(text: str, name: str) -> object:
    """Parse ``text`` as JSON if ``name`` ends in .json, otherwise as YAML. Raises ValueError with the position."""
    if name.lower().endswith(".json"):
        return parse_json(text)
    try:
        return _json_shaped(parse_yaml(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ValueError(f"line {mark.line + 1 if mark else 1}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def parse_json(text: str) -> object:
    """Parse JSON; lone surrogates become ``?``. Raises ValueError with the position or the reason."""
    try:
        return _json_shaped(json.loads(text))
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def _json_shaped(value: object) -> object:
    """Convert ``value`` to what JSON represents. Raises ValueError if it cannot: NaN, infinity, great depth."""
    if _levels_reach(value, MAX_LEVELS):
        raise ValueError(_TOO_DEEP)
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except TypeError as error:
        raise ValueError(str(error)) from error
    shaped: object = json.loads(text.encode("utf-8", "replace"))
    return shaped


def _levels_reach(value: object, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        containers = (each for each in layer if isinstance(each, dict | list))
        layer = [part for each in containers for part in (each.values() if isinstance(each, dict) else each)]
        if not layer:
            return False
    return True
