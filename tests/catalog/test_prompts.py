from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codex_multi_role.catalog import (
    RoleSpec,
    RoleSpecCatalog,
    build_prompt,
    build_repair_prompt,
    instructions_digest,
)
from tests.support.catalogs import Write


def test_order_of_a_prompt(shipped: RoleSpecCatalog) -> None:
    role, past = shipped.role("implementer"), [{"key": "PAST"}]
    prompt = build_prompt(
        shipped.general_prompts, role, "GOAL TEXT", {"key": "INCOME"}, {"key": "TESTED"}, task="TASK TEXT", earlier=past
    )
    parts = [
        "Role: implementer\n",
        "You write the code and its tests.",
        "GOAL TEXT",
        "YOUR TASK:\nTASK TEXT\n",
        "PAST",
        "INCOME",
        "TESTED",
        "RULES:",
        "- You may use tools",
        "- You may read files.",
        "- Propose every file change",
        "- Long reasoning",
        "- State only",
        "YOUR ANSWER:",
        '"files"',
    ]
    assert prompt.startswith(parts[0])
    assert sorted(parts, key=prompt.index) == parts


@pytest.mark.parametrize(("material", "times"), [({"text": "x" * 7000}, 1), ({"text": "x" * 9000}, 2)])
def test_task_is_repeated_after_much_material(shipped: RoleSpecCatalog, material: dict[str, str], times: int) -> None:
    """Its first paragraph, right before the description of the answer, wherever the material is."""
    texts, role = shipped.general_prompts, shipped.role("planner")
    task = "Judge this.\nAll of it.\n\nSOURCE:\n"
    for prompt in (
        build_prompt(texts, role, "g", material, task=task),
        build_prompt(texts, role, "g", task=task + material["text"]),
    ):
        assert prompt.count("Judge this.\nAll of it.\n") == times
        assert ("YOUR TASK AGAIN:\nJudge this.\nAll of it.\n\nYOUR ANSWER:" in prompt) == (times == 2)
    assert "AGAIN" not in build_prompt(texts, role, "g", {"text": "x" * 9000})


def test_role_that_is_known_is_not_repeated_but_its_task_is(shipped: RoleSpecCatalog) -> None:
    texts, role = shipped.general_prompts, shipped.role("planner")
    prompt = build_prompt(texts, role, "g", task="TASK TEXT", known=True)
    assert texts.known_section in prompt
    assert "YOUR TASK:\nTASK TEXT\n" in prompt
    assert role.prompt_text not in prompt
    assert "RULES" not in prompt


def test_rules_follow_the_shape_of_the_answer(shipped: RoleSpecCatalog) -> None:
    """Instructions count as known only together with the rules for the same shape."""
    texts, role = shipped.general_prompts, shipped.role("implementer")
    rules = {"files": "field files", "analysis_md": "analysis_md"}
    closed = {"type": "object", "additionalProperties": False}
    digests = set()
    for fields in ([], ["files"], ["analysis_md"], ["files", "analysis_md"]):
        schema = {**closed, "properties": {field: {} for field in fields}}
        asked = role.model_copy(update={"output_schema": schema, "schema_hint": ""})
        prompt = build_prompt(texts, asked, "g").partition("RULES:")[2].partition("YOUR ANSWER:")[0]
        assert [field for field, rule in rules.items() if rule in prompt] == fields
        digests.add(instructions_digest(texts, asked))
    assert len(digests) == 4


def test_rule_of_a_catalog_on_a_forbidden_field_is_left_out(shipped: RoleSpecCatalog) -> None:
    old = "- Long reasoning goes into analysis_md,\n  not into fields.\n- State facts."
    texts = shipped.general_prompts.model_copy(update={"analysis_rules": old})
    role, forbids = shipped.role("planner"), {"type": "object", "additionalProperties": False, "properties": {}}
    for schema, rules in ((None, old), (forbids, "files.\n- State facts.")):
        prompt = build_prompt(texts, role.model_copy(update={"output_schema": schema, "schema_hint": ""}), "g")
        assert f"{rules}\n\nYOUR ANSWER:" in prompt


def test_schema_is_shown_with_what_it_is_and_a_hint_as_it_is(shipped: RoleSpecCatalog) -> None:
    texts, schema = shipped.general_prompts, {"type": "object", "properties": {"a": {}}}
    for hint, shown in (("", "This is a JSON Schema."), ("{a: <int>} {role_name}", "{a: <int>} {role_name}")):
        role = shipped.role("planner").model_copy(update={"output_schema": schema, "schema_hint": hint})
        prompt = build_prompt(texts, role, "g")
        assert shown in prompt
        assert prompt.count(json.dumps(schema, indent=2)) == (not hint)


def test_parts_without_content_are_left_out(shipped: RoleSpecCatalog) -> None:
    prompt = build_prompt(shipped.general_prompts, shipped.role("planner"), "the goal")
    assert "INCOMING" not in prompt
    assert "TEST RESULT" not in prompt
    assert "EARLIER" not in prompt
    assert "\n\n\n" not in prompt


def test_blank_prompt_part_is_omitted_and_missing_one_defaults(write: Write) -> None:
    """A blank part of a catalog is left out of the prompt; for a missing part the shipped text is used."""
    catalog = RoleSpecCatalog.load(
        write(
            "version: 1\ngeneral_prompts: {analysis_rules: '', json_contract: }\nroles: [{name: a, prompt_text: A}]\n"
        )
    )
    prompt = build_prompt(catalog.general_prompts, catalog.role("a"), "g")
    assert prompt.startswith("Role: a\n\nA\n\nGOAL OF THE WHOLE TEAM:\ng\n\nRULES:")
    assert "must not write, move or delete files.\n\nYOUR ANSWER:" in prompt


OFFER = 'If you cannot do your task, answer {"error": "<what is missing or wrong>"}.'


def test_refusal_is_offered_where_the_schema_leaves_room_for_it(shipped: RoleSpecCatalog) -> None:
    role, opened = shipped.role("planner"), {"type": "object", "properties": {"a": {}}}
    for schema, offered in ((None, True), (opened, True), ({**opened, "additionalProperties": False}, False)):
        asked = role.model_copy(update={"output_schema": schema, "schema_hint": ""})
        prompt = build_prompt(shipped.general_prompts, asked, "g")
        assert (OFFER in prompt, '"error"' in prompt) == (offered, offered)


def test_contract_of_a_catalog_gets_no_shipped_rule(write: Write) -> None:
    """The copy of a catalog in an older run has the rule in its contract."""
    contract = '\'- One object, or {"error": "why"}.\''
    for general_prompts, count in ((f"{{json_contract: {contract}}}", 0), ("{role_header: 'Role {role_name}'}", 1)):
        roles = "roles: [{name: a, prompt_text: A}]"
        catalog = RoleSpecCatalog.load(write(f"version: 1\ngeneral_prompts: {general_prompts}\n{roles}\n"))
        prompt = build_prompt(catalog.general_prompts, catalog.role("a"), "g")
        assert prompt.count("If you cannot do your task") == count


def test_catalog_can_translate_every_part(write: Write) -> None:
    texts = {
        key: f"<{key} {{role_name}}>" for key in ("role_header", "json_contract", "rules_header", "analysis_rules")
    }
    sections = {
        "goal_section": "goal",
        "task_section": "task",
        "task_again_section": "task",
        "schema_section": "schema",
        "earlier_section": "earlier",
        "input_section": "input",
        "tests_section": "tests",
    }
    texts |= {key: f"<{key} {{{placeholder}}}>" for key, placeholder in sections.items()}
    rules = ("tools_allowed", "tools_forbidden", "files_read_and_write", "files_read_only", "files_write_only")
    capability = {key: f"<{key}>" for key in (*rules, "files_forbidden", "file_suggestions")}
    general = texts | {"repair_section": "<again>", "capability_rules": capability}
    capability |= {"skills": "<{skills}>", "own_tools": "<{tools}>"}
    roles = [{"name": "a", "prompt_text": "<text>", "skills": ["s"], "tools": ["t", "u"]}]
    write("---\nname: s\ndescription: d\n---\n", "skills/s/SKILL.md")
    path = write(json.dumps({"version": 1, "general_prompts": general, "roles": roles}))
    catalog = RoleSpecCatalog.load(path, lambda: ["t", "u"])
    prompt = build_prompt(
        catalog.general_prompts, catalog.role("a"), "g", {"p": 1}, {"t": 1}, task="<task>", earlier=[{"e": 1}]
    )
    untranslated = [line for line in prompt.splitlines() if line and line[0] not in '<{[}] "']
    assert not untranslated
    assert prompt.startswith(
        "<role_header a>\n\n<text>\n\n<goal_section g>\n\n<task_section <task>>\n\n<earlier_section ["
    )
    shown = "<rules_header a>\n<tools_allowed>\n<files_read_only>\n<$s>\n<t, u>\n<analysis_rules a>\n"
    assert prompt.endswith(f"{shown}\n<json_contract a>\n")
    assert (
        build_repair_prompt(catalog.general_prompts, catalog.role("a"), "p")
        == "<role_header a>\n\n<again>\n\n<json_contract a>\n"
    )
    assert catalog.notes == (
        "general_prompts: the shipped English texts are used for needed_section, continue_section, long_prompt_section",
    )


@pytest.mark.parametrize(
    ("flags", "rules"),
    [
        ({}, "You may use tools|You may read files. You must not write"),
        ({"allow_tools": False}, "You must not use tools"),
        ({"allow_write": True}, "You may use tools|You may read and write files"),
        ({"allow_read": False}, "You may use tools|You must neither read nor write"),
        ({"allow_read": False, "allow_write": True}, "You may use tools|You may write files"),
        ({"allow_file_suggestions": True}, "You may use tools|You may read files.|Propose every file change"),
    ],
)
def test_capability_rules_follow_the_flags(shipped: RoleSpecCatalog, flags: dict[str, bool], rules: str) -> None:
    role = RoleSpec.model_validate({"name": "a", "prompt_text": "A", "prompt_flags": flags})
    lines = build_prompt(shipped.general_prompts, role, "g").partition("RULES:\n")[2].splitlines()
    for line, rule in zip(lines, [*rules.split("|"), "State only"], strict=False):
        assert line.startswith(f"- {rule}")


def test_payloads_are_pretty_json_in_their_own_script(shipped: RoleSpecCatalog) -> None:
    payload = {"größe": ["ß", {"{goal}": "{role_name}"}]}
    prompt = build_prompt(shipped.general_prompts, shipped.role("planner"), "{input}", payload)
    assert json.dumps(payload, ensure_ascii=False, indent=2) in prompt
    assert "\n{input}\n" in prompt


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(goal=st.text(), key=st.text(), problem=st.text())
def test_any_text_gives_a_prompt_that_can_be_sent(shipped: RoleSpecCatalog, goal: str, key: str, problem: str) -> None:
    role = shipped.role("planner")
    for prompt in (
        build_prompt(shipped.general_prompts, role, goal, {key: goal}, {"t": problem}, earlier=[{key: problem}]),
        build_repair_prompt(shipped.general_prompts, role, problem),
    ):
        assert prompt.encode().decode() == prompt
        assert prompt.startswith("Role: planner\n")


def test_lone_surrogates_are_replaced_and_pairs_are_joined(shipped: RoleSpecCatalog) -> None:
    """Each lone surrogate becomes the replacement character U+FFFD."""
    prompt = build_prompt(shipped.general_prompts, shipped.role("planner"), "a\ud800b \ud83d\ude00 c\udfff")
    assert "\na\ufffdb \U0001f600 c\ufffd\n" in prompt
