from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import RoleSpecCatalog
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.reading.registry import hint
from tests.support.catalogs import TWO_ROLES, Write, message_at, raised
from tests.support.wrong_values import rows_of


def _roles(*entries: str, head: str = "version: 1") -> str:
    return f"{head}\nroles:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries)


_A, _B = "name: a, prompt_text: A", "name: b, prompt_text: B"


def test_folder_is_its_catalog_file(tmp_path: Path, write: Write) -> None:
    path = write(TWO_ROLES, "catalog.yml")
    assert RoleSpecCatalog.load(tmp_path).source == path
    path = write(TWO_ROLES, "catalog.yaml")
    assert RoleSpecCatalog.load(tmp_path).source == path


def test_folder_without_catalog_and_a_missing_one(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"holds no catalog\.yaml") as caught:
        RoleSpecCatalog.load(tmp_path)
    assert caught.value.hint == hint("no_catalog", "Write one, or name another folder with --roles.")
    with pytest.raises(DefinitionError, match="No such file"):
        RoleSpecCatalog.load(tmp_path / "nowhere")
    with pytest.raises(DefinitionError, match="File name too long"):
        RoleSpecCatalog.load(tmp_path / ("x" * 300))


def test_unknown_role_names_the_nearest(two_roles: RoleSpecCatalog) -> None:
    with pytest.raises(UsageError, match='unknown role "Planer"; did you mean "planner"\\?') as caught:
        two_roles.role("Planer")
    assert caught.value.hint == "Known: planner, developer."


def test_without_any_depends_on_the_order_is_the_chain(two_roles: RoleSpecCatalog) -> None:
    assert two_roles.dependencies() == {"planner": (), "developer": ("planner",)}


def test_one_depends_on_makes_the_declarations_the_graph(write: Write) -> None:
    catalog = RoleSpecCatalog.load(write(_roles(_A, _B, "name: c, prompt_text: C, depends_on: [a]")))
    assert catalog.dependencies() == {"a": (), "b": (), "c": ("a",)}


def test_new_keys_of_a_role(write: Write) -> None:
    write('{"type": "object", "required": ["summary"]}', "schemas/reply.json")
    write("name: a\nprompt_text: A\nlimits: {idle_seconds: 5}\ncodex_config: {x: 1, y: [2]}\n", "a.yaml")
    path = write(
        "version: 1\ndefaults: {limits: {turn_seconds: 50}, auto_approve: {commands: true}}\nroles:\n"
        "  - role_file: a.yaml\n    output_schema: schemas/reply.json\n    codex_config: {y: 3}\n"
        "    auto_approve: {file_changes: true}\n    optional: true\n    sandbox: danger-full-access\n"
        "    approval_policy: never\n"
        "  - {name: b, prompt_text: B, output_schema: {type: object}, behaviors: {timeout_policy: planner}}\n"
    )
    first, second = RoleSpecCatalog.load(path).roles
    assert first.output_schema == {"type": "object", "required": ["summary"]}
    assert first.codex_config == {"x": 1, "y": 3}
    assert first.limits.model_dump(exclude_none=True) == {"idle_seconds": 5, "turn_seconds": 50}
    assert first.auto_approve.model_dump() == {"commands": True, "file_changes": True}
    assert (first.optional, first.sandbox, first.approval_policy) == (True, "danger-full-access", "never")
    assert second.output_schema == {"type": "object"}
    assert second.limits.model_dump(exclude_none=True) == {"idle_seconds": 300, "turn_seconds": 50}
    assert [file.name for file in RoleSpecCatalog.load(path).files] == ["catalog.yaml", "a.yaml", "reply.json"]


def test_file_that_two_roles_share_is_listed_once(write: Write) -> None:
    prompt = write("Ü", "p.txt")
    catalog = RoleSpecCatalog.load(write(_roles("name: a, prompt_file: p.txt", f"name: b, prompt_file: {prompt}")))
    assert [role.prompt_text for role in catalog.roles] == ["Ü", "Ü"]
    assert catalog.files == (catalog.source, prompt)


def test_hint_parameters_may_be_any_value(write: Write) -> None:
    path = write(
        "version: 1\nschema_hints: {t: '{role_name} {n} {flag} {list} {other}', default: }\nroles:\n"
        "  - {name: a, prompt_text: A, schema_hint_template: t, schema_hint_params: {n: 1, flag: true, list: [ü]}}\n"
        "  - {name: b, prompt_text: B}\n"
    )
    first, second = RoleSpecCatalog.load(path).roles
    assert first.schema_hint == 'a 1 true ["ü"] {other}'
    assert second.schema_hint == ""


@pytest.mark.parametrize(("text", "message"), rows_of("definitions", "catalog", "before"))
def test_every_mistake_names_file_and_key(tmp_path: Path, write: Write, text: str, message: str) -> None:
    path = write(text)
    error = raised(DefinitionError, RoleSpecCatalog.load, path, lambda: ["ask", "search"])
    assert message_at(path, error).startswith(message.replace("{folder}", str(tmp_path)))


@pytest.mark.parametrize(("role", "message"), rows_of("definitions", "role", "before"))
def test_mistakes_in_a_role_file_name_that_file(tmp_path: Path, write: Write, role: str, message: str) -> None:
    file = write(role, "roles/a.yaml")
    path = write(_roles("name: a, role_file: roles/a.yaml", "name: b, prompt_text: B, depends_on: [a]"))
    error = raised(DefinitionError, RoleSpecCatalog.load, path)
    place = path if message.startswith("role a: ") else file
    assert message_at(place, error).startswith(message.replace("{folder}", str(tmp_path)))


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ('{"type": 1}', "s.json", "type: not a valid JSON Schema: 1 is not valid under any of the given schemas"),
        ("type: 1", "s.yaml", "type: not a valid JSON Schema: 1 is not valid under any of the given schemas"),
        ("[1]", "s.json", "must be a mapping: a JSON Schema"),
        ('{"type": "object"', "s.json", "not valid JSON: Expecting ',' delimiter"),
    ],
)
def test_mistakes_in_a_schema_file_name_that_file(write: Write, content: str, name: str, message: str) -> None:
    schema = write(content, name)
    path = write(_roles(f"name: a, prompt_text: A, output_schema: {name}"))
    assert message_at(schema, raised(DefinitionError, RoleSpecCatalog.load, path)).startswith(message)


@pytest.mark.parametrize(
    "key",
    [
        "prompt_flags: {allow_write: 1}",
        "behaviors: {can_finish: 'yes'}",
        "auto_approve: {commands: 1.0}",
        "optional: 1",
        "project_instructions: 0",
    ],
)
def test_boolean_of_a_role_must_be_true_or_false(write: Write, key: str) -> None:
    """What only looks like one is refused with file and key path, in a role's own file as well."""
    path = key.partition(":")[0] + (f".{key.partition('{')[2].partition(':')[0]}" if "{" in key else "")
    catalog = write(_roles(f"name: a, prompt_text: A, {key}"))
    with pytest.raises(DefinitionError, match=f"{catalog}:.*: role a: {path}: must be true or false, not "):
        RoleSpecCatalog.load(catalog)
    role = write(f"name: a\nprompt_text: A\n{key}\n", "a.yaml")
    with pytest.raises(DefinitionError, match=f"{role}:[0-9:]+ {path}: must be true or false, not "):
        RoleSpecCatalog.load(write(_roles("role_file: a.yaml")))


@pytest.mark.parametrize(
    "key",
    ["max_steps: true", "limits: {turn_seconds: true}", "limits: {idle_seconds: false}", 'limits: {max_cost: "1.5"}'],
)
def test_number_of_a_role_must_not_be_boolean_or_text(write: Write, key: str) -> None:
    path = key.partition(":")[0] + (f".{key.partition('{')[2].partition(':')[0]}" if "{" in key else "")
    catalog = write(_roles(f"name: a, prompt_text: A, {key}"))
    with pytest.raises(DefinitionError, match=f"{catalog}:.*: role a: {path}: must be a (whole )?number, not "):
        RoleSpecCatalog.load(catalog)


def test_unknown_reasoning_effort_is_refused(write: Write) -> None:
    """Codex would send it to the provider as it is."""
    with pytest.raises(DefinitionError, match=r'role a: reasoning_effort: unknown effort "hgih"; did you mean "hi'):
        RoleSpecCatalog.load(write(_roles("name: a, prompt_text: A, reasoning_effort: hgih")))
    with pytest.raises(DefinitionError, match=r'defaults.reasoning_effort: unknown effort "banana"'):
        RoleSpecCatalog.load(write("defaults: {reasoning_effort: banana}\n" + _roles(_A)))
