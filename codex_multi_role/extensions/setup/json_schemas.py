"""``schema``: the JSON Schemas of the files that people write and of a run's events, derived from what reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import click
from pydantic import TypeAdapter

from codex_multi_role.cli.options import KNOWN
from codex_multi_role.cli.output import put_text
from codex_multi_role.cli.setting import Setting
from codex_multi_role.cli.settings import WORKSPACE, WORKSPACE_PARTS, settings_of_extensions
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder.event_log import TYPES

if TYPE_CHECKING:
    from pydantic import BaseModel

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = ".schemas"
"""Where a team keeps schemas for editors, beside its catalog: found without network, and of the installed version."""
NULL = {"type": "null"}
DATA = ("default", "enum", "const")
"""Keywords whose values are data, not schemas."""


def schema_of(kind: str) -> Json:
    """The JSON Schema of a ``kind``: one of `all_kinds`."""
    schema = KINDS[kind]() if kind in KINDS else INSTALLED.find(kind).model_json_schema()
    return {"$schema": DIALECT, "title": f"codex-multi-role {kind}", **_tidied(schema)}


def schema_text(kind: str) -> str:
    """The schema as it is printed and written to files."""
    return f"{json.dumps(schema_of(kind), indent=2)}\n"


def editor_comment(file: Path, roles: Path, kind: str) -> str:
    """The first line for ``file``, by which editors find the schema among those below ``roles``."""
    place = os.path.relpath(_schema_file(roles, kind), file.parent)
    return f"# yaml-language-server: $schema={Path(place).as_posix()}\n"


def schema_files(roles: Path, kinds: Iterable[str]) -> dict[Path, bytes]:
    """The schemas that editor comments name, for the team in ``roles``."""
    return {_schema_file(roles, kind): schema_text(kind).encode() for kind in kinds}


def _schema_file(roles: Path, kind: str) -> Path:
    return roles / FOLDER / f"{kind}.json"


def _tidied(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Without pydantic's titles, which repeat the names, and with descriptions, from docstrings, in Markdown."""
    if isinstance(value, list):
        return [_tidied(item) for item in value]
    if not isinstance(value, dict):
        return value
    tidied = {key: item if key in DATA else _tidied(item) for key, item in value.items() if not _is_noise(key, item)}
    if isinstance(tidied.get("description"), str):
        tidied["description"] = tidied["description"].replace("``", "`")
    return _with_null_as_type(tidied)


def _is_noise(key: str, value: object) -> bool:
    return (key == "title" and isinstance(value, str)) or (key == "default" and value is None)


def _with_null_as_type(schema: Json) -> Json:
    """``type: [boolean, null]`` for a choice between the two, which editors show more plainly."""
    match schema.get("anyOf"):
        case [{"type": str() as kind} as one, {"type": "null"}] if not one.keys() & {"enum", "const"}:
            return {**{key: value for key, value in schema.items() if key != "anyOf"}, **one, "type": [kind, "null"]}
    return schema


def _of_model(where: str) -> Json:
    schema: Json = resolve_name(f"codex_multi_role.{where}").model_json_schema()
    return schema


def _events() -> Json:
    """One event: a line of ``events.jsonl`` or of ``--json``. A later version may add fields and types."""
    definitions: Json = {}
    for event in TYPES.values():
        schema = TypeAdapter(event).json_schema()
        definitions |= schema.pop("$defs", {})
        fields = {"type": {"const": event.type}, **schema["properties"]}
        required = ["type", "at", *schema.get("required", ())]
        definitions[event.__name__] = schema | {"properties": fields, "required": required}
    return {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in definitions], "$defs": definitions}


def _settings() -> Json:
    """Keys may be written with hyphens or underscores."""
    known = {setting.key: setting for setting in KNOWN}
    settings = {**known, **settings_of_extensions(known)}
    keys = {name: each for key, each in settings.items() for name in dict.fromkeys((key.replace("_", "-"), key))}
    properties = {name: _setting(each) for name, each in keys.items()}
    parts = {part: _setting(settings[key]) for part, key in WORKSPACE_PARTS.items()}
    properties[WORKSPACE]["anyOf"].append({"type": "object", "properties": parts, "additionalProperties": False})
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _setting(setting: Setting) -> Json:
    one = _value(setting)
    several = {"anyOf": [one, {"type": "array", "items": one}, {"type": "object", "additionalProperties": one}, NULL]}
    return {"description": setting.help or "", **(several if setting.multiple else {"anyOf": [one, NULL]})}


def _value(setting: Setting) -> Json:
    """What the option's type accepts."""
    match setting.type:
        case click.Choice(choices=choices):
            return {"enum": list(choices)}
        case click.IntRange() as bounds:
            return {"type": "integer", **_bounds(bounds)}
        case click.FloatRange() as bounds:
            return {"type": "number", **_bounds(bounds)}
    return {"type": "boolean"} if setting.is_flag else {"type": ["string", "number", "boolean"]}


def _bounds(bounds: click.IntRange | click.FloatRange) -> Json:
    names = {
        "exclusiveMinimum" if bounds.min_open else "minimum": bounds.min,
        "exclusiveMaximum" if bounds.max_open else "maximum": bounds.max,
    }
    return {name: bound for name, bound in names.items() if bound is not None}


MODELS = {
    "catalog": "catalog.catalog:CatalogFile",
    "role": "catalog.role_entries:RoleFile",
    "flow": "catalog.flow_spec:FlowFile",
    "playbook": "playbook:Playbook",
    "prices": "catalog.prices:PricesFile",
}
"""The models of files, by kind; they are imported when they are used, because `--help` needs none."""
KINDS: Mapping[str, Callable[[], Json]] = {
    **{kind: partial(_of_model, where) for kind, where in MODELS.items()},
    "settings": _settings,
    "events": _events,
}
INSTALLED: Registry[type[BaseModel]] = Registry("schema", "codex_multi_role.schemas", {})
"""The models of files that extensions read, by kind."""


def all_kinds() -> list[str]:
    """Our own, then those of extensions."""
    return [*KINDS, *(kind for kind in INSTALLED.names() if kind not in KINDS)]


class Kind(click.Choice[str]):
    """A choice of `all_kinds`, which are looked up for this command alone: others that import this module need none."""

    case_sensitive = True

    def __init__(self) -> None: ...

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]  # nobody sets them
        return tuple(all_kinds())


@click.command()
@click.argument("kind", type=Kind())
def schema(kind: str) -> None:
    """Print the JSON Schema of KIND, for editors and other programs. `events` describes one line of `--json`.

    `init`, `roles new` and `flows new` write a comment into each file by which editors find its schema.

    \b
    Examples:
      codex-multi-role schema flow > flow.json
    """
    put_text(schema_text(kind))
