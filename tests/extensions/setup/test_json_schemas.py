"""What the models refuse because of its shape, the schemas refuse as well; the committed files are these schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from codex_multi_role.catalog import load_yaml
from codex_multi_role.cli.options import KNOWN
from codex_multi_role.cli.settings import read_file
from codex_multi_role.errors import DefinitionError
from codex_multi_role.extensions.setup import json_schemas
from codex_multi_role.extensions.setup.json_schemas import INSTALLED, schema_of
from codex_multi_role.host.settings_files import SETTINGS_FILE
from codex_multi_role.playbook.example import example
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.shipped import (
    FLOWS,
    PLAYBOOKS,
    definition_folders,
    list_definitions,
    list_starters,
    packaged_roles,
)
from tests.support.catalogs import write_team
from tests.support.console import console
from tests.support.event_samples import EVENT_FIELDS

COMMITTED = Path(__file__).parents[3] / "schemas"
MODELS: dict[str, type[BaseModel]] = {
    kind: resolve_name(f"codex_multi_role.{where}") for kind, where in json_schemas.MODELS.items()
}
OF_EXTENSION = pytest.param("batch-goal", marks=pytest.mark.extensions)
SHIPPED = {
    "catalog": [packaged_roles() / "catalog.yaml", *(path / "catalog.yaml" for path in list_starters().values())],
    "role": [path for each in definition_folders() for path in each.glob("*er.yaml")],
    "flow": list_definitions(FLOWS, None).values(),
    "playbook": list_definitions(PLAYBOOKS, None).values(),
}
EXAMPLES = {"url": "https://host/mcp", "cwd": "/srv", "date": "2026-01-01", "items": ["x"]}
"""Where a schema does not say enough for an example."""
FURTHER: dict[str, list[Json]] = {
    "GoalLine": [{"repository": "x"}],
    "InputSpec": [{"type": "number"}],
    "AskStep": [
        {"id": "a", "ask": "one", "for_each": ["x"], "isolate": "worktree"},
    ],
}
"""What other keys need."""
WRONG = ["text", "", 7, 0, -1, 1.5, True, [], ["x"], [7], {}, {"unknown_key": 1}, None]
# Parts of messages about what a value means, which a schema does not know.
MEANING = (
    *(
        "_seconds belongs to ask",
        "must be relative to",
        "names nothing",
        "must be a program",
        "must be an absolute",
        "must start with",
    ),
    *("must hold", "minimum and maximum", "the default", "required input", "must_exist"),
    *("exclude each other", "ref needs", "worktree and branch belong", "branch needs", "the same one twice"),
    *(
        "needs states",
        "needs a prompt",
        "goes with",
        "needs max_items",
        "requires merge",
        "merge belongs",
        "with a time limit",
        "give one of",
    ),
)


@pytest.mark.parametrize("kind", json_schemas.all_kinds())
def test_schema_is_one(kind: str) -> None:
    Draft202012Validator.check_schema(schema_of(kind))


def test_schemastore_entries_name_these_schemas() -> None:
    """Only the settings have a file name of their own: `roles/*.yaml` are also those of other tools."""
    entries = json.loads((COMMITTED / "schemastore.json").read_text())
    for entry in entries:
        kind = entry["name"].removeprefix("codex-multi-role ")
        assert (COMMITTED / f"{kind}.json").is_file()
        assert entry["url"] == f"https://json.schemastore.org/codex-multi-role-{kind}.json"
        assert entry.get("fileMatch", []) == ([SETTINGS_FILE] if kind == "settings" else [])


def test_command_prints_the_schema(tmp_path: Path) -> None:
    done = console("schema", "flow", folder=tmp_path)
    assert (done.returncode, json.loads(done.stdout)) == (0, schema_of("flow"))
    wrong = console("schema", "flwo", folder=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "'flow'" in wrong.stderr


@pytest.mark.parametrize(
    ("kind", "file"),
    [pytest.param(kind, file, id=f"{kind}-{file.name}") for kind, files in SHIPPED.items() for file in files],
)
def test_shipped_files_fit_their_schema(kind: str, file: Path) -> None:
    assert list(Draft202012Validator(schema_of(kind)).iter_errors(load_yaml(file))) == []


@pytest.mark.parametrize("kind", [*MODELS, OF_EXTENSION])
def test_schema_refuses_what_the_model_refuses_by_shape(kind: str) -> None:
    """Each key of each model in the file is left out, has an example, and each wrong value."""
    whole: Any = schema_of(kind)
    models = _models(MODELS[kind] if kind in MODELS else INSTALLED.find(kind), {})
    definitions = whole.get("$defs", {})
    assert models.keys() >= definitions.keys() - {"JsonValue"}
    for name, model in models.items():
        schema = {"$ref": f"#/$defs/{name}", "$defs": definitions} if name in definitions else whole
        validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
        for tried in _documents(model, definitions.get(name, whole), definitions):
            errors = _errors(model, tried)
            if problems := [each for each in errors if not any(words in each for words in MEANING)]:
                assert not validator.is_valid(tried), (name, tried, problems)
            elif not errors:
                assert validator.is_valid(tried), (name, tried)


@pytest.mark.parametrize("kind", [*MODELS, "settings", OF_EXTENSION])
def test_every_key_is_described(kind: str) -> None:
    """Editors show the text beside the key; events are for programs, and have a page."""
    whole = schema_of(kind)
    written = {kind: whole, **whole.get("$defs", {})}
    objects = {name: each if "properties" in each else each.get("anyOf", [{}])[0] for name, each in written.items()}
    keys = [(name, key, each) for name, one in objects.items() for key, each in one.get("properties", {}).items()]
    assert keys
    assert [f"{name}.{key}" for name, key, each in keys if not each.get("description")] == []


def _models(annotation: Any, found: dict[str, type[BaseModel]]) -> dict[str, type[BaseModel]]:
    """``found``, with those within ``annotation``, by name."""
    inner = [*get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation.__name__ not in found:
        found[annotation.__name__] = annotation
        inner += [field.annotation for field in annotation.model_fields.values()]
    for each in inner:
        _models(each, found)
    return found


def _documents(model: type[BaseModel], schema: Json, definitions: Json) -> Iterator[Json]:
    """Of each of the model's alternatives one that is valid, and those that differ from it in one key."""
    properties = schema.get("properties") or schema["anyOf"][0]["properties"]
    good = {key: EXAMPLES.get(key) or example({**each, "$defs": definitions}) for key, each in properties.items()}
    fitting: dict[str, Json] = {}
    ways = [(*schema.get("required", ()), way, "id") for way in getattr(model, "alternatives", {}) or ("",)]
    bases = [{key: value for key, value in good.items() if key in way} for way in ways]
    for base in (*bases, *FURTHER.get(model.__name__, ())):
        assert not _errors(model, base), base
        yield from (base, {**base, "unknown_key": 1}, *({**base, key: value} for key, value in good.items()))
        yield from ({key: value for key, value in base.items() if key != left_out} for left_out in base)
        fitting |= {key: base for key in good if not _errors(model, {**base, key: good[key]})}
    for key, base in fitting.items():
        within: list[Any] = [[each] for each in WRONG] if isinstance(good[key], list) else []
        within += [{"a": each} for each in WRONG] if isinstance(good[key], dict) else []
        yield from ({**base, key: value} for value in (*WRONG, *within))


def _errors(model: type[BaseModel], data: Any) -> list[str]:
    try:
        model.model_validate(data)
    except ValidationError as error:
        return [f"{each['type']}: {each['msg']}" for each in error.errors()]
    return []


def test_events_fit_their_schema() -> None:
    schema = Draft202012Validator(schema_of("events"))
    samples = [event(**fields).as_record() for event, fields in EVENT_FIELDS.items()]
    for record in samples:
        assert schema.is_valid(json.loads(json.dumps(record))), record
        assert not schema.is_valid({**record, "type": "unheard_of"})
        assert not schema.is_valid({key: value for key, value in record.items() if key != "at"})


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ("cycles: 3\nrun_tests: false\nmodel: gpt\nflow:\n", True),
        ("run-tests: true\nmax-tokens: 5\nconfig: [a=1]\ninput: {a: 1}\n", True),
        ("cylces: 3\n", False),
        ("cycles: [3]\n", False),
        ("model: {a: 1}\n", False),
        ("config: [[a]]\n", False),
        ("workspace: {path: ., copy: [.env], setup: make}\n", True),
        ("workspace: {cpy: [.env]}\n", False),
        ("workspace: {copy: [[.env]]}\n", False),
        ("workspace: {copy: .env}\n", True),
    ],
)
def test_settings_schema_agrees_with_the_reader(tmp_path: Path, text: str, is_valid: bool) -> None:
    file = tmp_path / "codex-multi-role.yaml"
    file.write_text(text)
    assert Draft202012Validator(schema_of("settings")).is_valid(load_yaml(file)) == is_valid
    try:
        read_file(file, {setting.key: setting for setting in KNOWN})
    except DefinitionError:
        assert not is_valid
    else:
        assert is_valid


def _schema_named_in(file: Path) -> Json:
    """The schema that the editor comment of ``file`` leads to."""
    found = re.match(r"# yaml-language-server: \$schema=(.*)\n", file.read_text())
    assert found is not None, file
    schema: Json = json.loads((file.parent / found[1]).read_text())
    return schema


@pytest.mark.extensions
def test_init_and_new_lead_editors_to_the_schemas(tmp_path: Path) -> None:
    """The comment is a path within the project: it needs no network, and fits the installed version."""
    assert console("init", "--shipped", folder=tmp_path).returncode == 0
    assert console("roles", "new", "helper", folder=tmp_path).returncode == 0
    assert console("flows", "new", "mine", folder=tmp_path).returncode == 0
    kinds = {
        "codex-multi-role.yaml": "settings",
        "roles/catalog.yaml": "catalog",
        "roles/planner.yaml": "role",
        "roles/helper.yaml": "role",
        "roles/flows/cycles.yaml": "flow",
        "roles/flows/mine.yaml": "flow",
        "roles/playbooks/roman-numerals.yaml": "playbook",
    }
    for name, kind in kinds.items():
        assert _schema_named_in(tmp_path / name) == schema_of(kind), name
    assert "yaml-language-server" not in (tmp_path / "roles/search.yaml").read_text()


def test_new_flow_of_an_older_team_brings_its_schema(tmp_path: Path) -> None:
    write_team(tmp_path)
    assert console("flows", "new", "mine", "--roles", "team", folder=tmp_path).returncode == 0
    assert _schema_named_in(tmp_path / "team/flows/mine.yaml") == schema_of("flow")
