"""What the models refuse because of its shape, the schemas refuse as well; the committed files are these schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from codex_multi_role.catalog import load_yaml
from codex_multi_role.catalog.catalog import CatalogFile
from codex_multi_role.catalog.flow_spec import FlowFile
from codex_multi_role.catalog.role_entries import RoleFile
from codex_multi_role.cli.options import KNOWN
from codex_multi_role.cli.settings import read_file
from codex_multi_role.errors import DefinitionError
from codex_multi_role.extensions.setup.json_schemas import INSTALLED, KINDS, schema_of, schema_text
from codex_multi_role.host.settings_files import SETTINGS_FILE
from codex_multi_role.playbook import Playbook
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.shipped import (
    FLOWS,
    PLAYBOOKS,
    definition_folders,
    list_definitions,
    list_starters,
    packaged_roles,
)
from codex_multi_role.run_folder.events import AddedEvent, RunEvent, UnknownEvent
from tests.support.catalogs import write_team
from tests.support.console import console
from tests.support.event_samples import EVENT_FIELDS
from tests.support.long_run import by_default

COMMITTED = Path(__file__).parents[2] / "schemas"
MODELS: dict[str, type[BaseModel]] = {
    "catalog": CatalogFile,
    "role": RoleFile,
    "flow": FlowFile,
    "playbook": Playbook,
}
OF_EXTENSION = pytest.param("batch-goal", marks=pytest.mark.extensions)
SHIPPED = {
    "catalog": [packaged_roles() / "catalog.yaml", *(path / "catalog.yaml" for path in list_starters().values())],
    "role": [path for each in definition_folders() for path in each.glob("*er.yaml")],
    "flow": list_definitions(FLOWS, None).values(),
    "playbook": list_definitions(PLAYBOOKS, None).values(),
}
SHIPPED_CATALOG: Any = load_yaml(packaged_roles() / "catalog.yaml")
ROLES: list[Any] = [
    {
        "name": "one",
        "model": "gpt",
        "reasoning_effort": "low",
        "prompt_text": "Do it.",
        "prompt_flags": {
            "allow_tools": True,
            "allow_read": True,
            "allow_write": False,
            "allow_file_suggestions": False,
        },
        "behaviors": {
            "timeout_policy": "planner",
            "can_finish": True,
            "apply_files": True,
            "is_orchestrator": True,
            "can_request_clarification": True,
            "reports_to": "two",
        },
        "sandbox": "read-only",
        "approval_policy": "never",
        "auto_approve": {"commands": True, "file_changes": False},
        "limits": {"idle_seconds": 5, "turn_seconds": 50.5, "max_turns": 7, "max_tokens": 9_000, "max_cost": 1.5},
        "protect": ["tests/**"],
        "mcp_servers": {
            "docs": {
                "command": "docs",
                "args": ["-v"],
                "cwd": "/srv",
                "env": {"A": "b"},
                "env_vars": ["HOME"],
                "startup_timeout_sec": 3,
                "tool_timeout_sec": 4,
                "approval": "auto",
                "tools": {"a": "auto"},
            },
            "web": {
                "url": "https://host/mcp",
                "bearer_token_env_var": "KEY",
                "enabled_tools": ["search"],
                "disabled_tools": ["buy"],
            },
            "gone": None,
        },
        "codex_config": {"x": 1},
        "project_instructions": True,
        "skills": ["draw"],
        "depends_on": ["two"],
        "schema_hint_params": {"a": 1},
        "output_schema": {"type": "object"},
        "strict_output": True,
        "tools": ["ask_user"],
        "max_steps": 3,
        "optional": True,
    },
    {"name": "two", "model_env": "MODEL", "prompt_file": "two.md", "schema_hint_template": "default"},
]
EVERY_KEY: dict[str, list[Any]] = {
    "batch-goal": [
        {
            **{
                "id": "a",
                "goal": "g",
                "priority": 1,
                "labels": ["gpu"],
                "flow": "f",
                "inputs": {"a": [1]},
                "cycles": 2,
            },
            **{"roles": "r", "workspace": "w", "worktree": True, "branch": "b", "model": "m", "config": ["a=1"]},
            **{
                "playbook": "p",
                "repair_attempts": 1,
                "run_tests": False,
                "baseline": False,
                "pytest_cmd": "pytest",
                "test_seconds": 5,
            },
            **{"max_turns": 3, "max_tokens": 5, "max_cost": 2.5, "max_seconds": 1.5, "max_processes": 2, "yes": True},
        },
        {"repository": "x", "ref": "main"},
        {"repositories": ["x", "y"]},
    ],
    "role": ROLES,
    "flow": [
        {
            "name": "own",
            "description": "What it is for.",
            "internal": True,
            "goal": {"default": "it", "min_length": 1, "max_length": 9},
            "inputs": {"a": 1, "b": None, "c": {"type": "number", "default": 2, "minimum": 1}, "d": ["x"], "e": "text"},
            "vars": {"v": [1]},
            "workspace": {"copy": [".env"], "setup": "make"},
            "protect": ["tests"],
            "allow_removed_tests": ["test_old.py"],
            "states": {"begin": "PLANNING", "success": "DONE", "failure": "FAILED"},
            "outputs": ["work"],
            "result": {
                "title": "It is done",
                "text": "{{ vars.v }}",
                "format": "text",
                "file": "a.md",
                "figures": {"words": "{{ vars.v }}"},
            },
            "steps": [
                {
                    "id": "work",
                    "ask": "one",
                    "prompt": "Do.",
                    "prompt_replaces": True,
                    "reply": {"type": "object"},
                    "limits": {"idle_seconds": 1, "turn_seconds": 2},
                    "isolate": "worktree",
                    "merge": "none",
                    "for_each": "{{ vars.v }}",
                    "needs": "item.needs",
                    "max_items": 3,
                    "concurrency": 2,
                    "as": "task",
                    "retry": {"attempts": 2, "backoff_seconds": 0},
                    "on_error": "skip",
                    "on_bad": "continue",
                    "set": {"v": 1},
                    "state": "WORKING",
                },
                {"check": "tests", "with": {"a": 1}, "max_visits": 2, "repeatable": False, "limits": {"seconds": 9}},
                {"id": "any", "ask": "{{ item }}", "roles": ["one", "two"], "for_each": ["one"]},
                {"id": "both", "ask": ["one", "two"], "concurrency": 1, "until": "true", "on_item_error": "stop"},
                {"id": "fine", "review": "Fine?", "show": "all", "time_limit_seconds": 5, "default": "reject"},
                {
                    "id": "release",
                    "review": "Which?",
                    "options": ["ship", "hold"],
                    "fields": {"copies": {"type": "integer", "default": 1}},
                },
                {
                    "call": "other",
                    "max_depth": 2,
                    "for_each": "{{ vars.v }}",
                    "max_items": 3,
                    "next": [
                        {"when": "true", "to": "work"},
                        {"end": "no", "exit": 1, "reason": "Why.", "suggest": "resume RUN"},
                    ],
                },
            ],
            "finally": [{"id": "tidy", "check": "command", "with": {"a": 1}, "limits": {"seconds": 9}}],
        }
    ],
    "playbook": [
        {
            "name": "own",
            "description": "What it shows.",
            "goal": "it",
            "cycles": 2,
            "roles": {
                "one": [
                    {
                        "json": {"a": 1},
                        "deltas": 3,
                        "usage": {"input_tokens": 1, "output_tokens": 2},
                        "repairs": [{"text": "x"}],
                    },
                    {"steps": [{"call": "tool", "arguments": {"a": 1}}, {"patch": "p", "delay_seconds": 0.5}]},
                    {"attempts": [{"fault": {"status": 500, "code": "x", "headers": {"a": "b"}}}, {"text": "y"}]},
                    {"attempts": [{"fault": {"status": 400, "message": "no", "body": "{}"}}, {"text": "y"}]},
                    {"choose": [{"when": "visit > 1", "text": "z"}, {"json": 1, "web_search": ["q"]}]},
                ],
                "two": [{"fault": {"empty": True}}, {"fault": {"garbage": "<html>"}}],
                "three": [{"fault": {"stall_seconds": 1}}],
            },
            "repeat_last": True,
            "default": {"fault": {"drop": True, "after_events": 2}},
        }
    ],
    "catalog": [
        {
            "version": 1,
            "defaults": {"reasoning_effort": "high", "limits": {"idle_seconds": 3}},
            "general_prompts": SHIPPED_CATALOG["general_prompts"],
            "schema_hints": {"default": "JSON", "none": None},
            "roles": [*ROLES, {"role_file": "three.yaml"}],
        }
    ],
}
WRONG = ["text", "", 7, 0, -1, 1.5, True, [], ["x"], [7], {}, {"unknown_key": 1}, None]
# Parts of messages about what a value means, which a schema does not know.
MEANING = (
    *("must be relative to", "names nothing", "must be a program", "must be an absolute", "must start with"),
    *("must hold", "minimum and maximum", "the default", "required input", "must_exist"),
    *("exclude each other", "ref needs", "worktree and branch belong", "branch needs", "the same one twice"),
    *(
        "needs states",
        "needs a prompt",
        "goes with",
        "needs max_items",
        "merge belongs",
        "with a time limit",
        "give one of",
    ),
)


@pytest.mark.parametrize(
    "kind",
    [*(pytest.param(kind, marks=pytest.mark.extensions if kind == "settings" else ()) for kind in KINDS), OF_EXTENSION],
)
def test_committed_schema_is_the_current_one(kind: str) -> None:
    """`codex-multi-role schema KIND > schemas/KIND.json` writes it again."""
    Draft202012Validator.check_schema(schema_of(kind))
    assert (COMMITTED / f"{kind}.json").read_text() == schema_text(kind)


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
def test_documents_that_are_mutated_have_every_key(kind: str) -> None:
    schema: Any = schema_of(kind)
    keys = {key for each in (schema, *schema["$defs"].values()) for key in each.get("properties", ())}
    assert keys - set(_keys(EVERY_KEY[kind])) == set()


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(inner)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "kind",
    [
        *by_default(["role", "flow"], MODELS),
        pytest.param("batch-goal", marks=[pytest.mark.extensions, pytest.mark.long]),
    ],
)
def test_schema_refuses_what_the_model_refuses_by_shape(kind: str, step: int) -> None:
    """Every value is removed, replaced by one of another type or outside its bounds, and given an unknown key."""
    schema = Draft202012Validator(schema_of(kind))
    model = MODELS[kind] if kind in MODELS else INSTALLED.find(kind)
    for whole in EVERY_KEY[kind]:
        assert list(schema.iter_errors(whole)) == []
        model.model_validate(whole)
    tried = 0
    for path, mutated in chain.from_iterable(map(partial(_mutations, step=step), EVERY_KEY[kind])):
        tried += 1
        errors = _errors(model, mutated)
        if problems := [each for each in errors if not any(words in each for words in MEANING)]:
            assert not schema.is_valid(mutated), (path, problems)
        elif not errors:
            assert schema.is_valid(mutated), (path, mutated)
    assert tried > 100


def _mutations(whole: Any, step: int) -> Iterator[tuple[tuple[int | str, ...], Any]]:
    """With every value ``step``-th of `WRONG`, by turns."""
    for number, (path, value) in enumerate([*_values(whole, ())]):
        for wrong in WRONG[number % step :: step]:
            if wrong != value:
                yield path, _changed(whole, path, lambda parent, key, wrong=wrong: parent.__setitem__(key, wrong))
        yield path, _changed(whole, path, lambda parent, key: parent.__delitem__(key))
        if isinstance(value, dict):
            yield path, _changed(whole, (*path, "unknown_key"), lambda parent, key: parent.__setitem__(key, 1))


def _values(value: Any, path: tuple[int | str, ...]) -> Iterator[tuple[tuple[int | str, ...], Any]]:
    if path:
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _values(inner, (*path, key))


def _changed(whole: Any, path: tuple[int | str, ...], change: Any) -> Any:
    copy = deepcopy(whole)
    change(_at(copy, path[:-1]), path[-1])
    return copy


def _at(value: Any, path: tuple[int | str, ...]) -> Any:
    for part in path:
        value = value[part]
    return value


def _errors(model: type[BaseModel], data: Any) -> list[str]:
    try:
        model.model_validate(data)
    except ValidationError as error:
        return [f"{each['type']}: {each['msg']}" for each in error.errors()]
    return []


def test_events_fit_their_schema() -> None:
    schema = Draft202012Validator(schema_of("events"))
    samples = [event(**fields).as_record() for event, fields in EVENT_FIELDS.items()]
    assert {event["type"] for event in samples} >= {
        event.type for event in RunEvent.__subclasses__() if event not in (AddedEvent, UnknownEvent)
    }
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
