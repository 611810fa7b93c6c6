"""A catalog written for the original program loads unmodified."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from codex_multi_role.catalog import (
    CapabilityRules,
    GeneralPrompts,
    RoleSpecCatalog,
    build_continue_prompt,
    build_prompt,
    build_repair_prompt,
)
from codex_multi_role.catalog.prompts import completed, missing_parts

_FOLDER = Path(__file__).parent / "original" / "config"


@pytest.fixture
def original() -> RoleSpecCatalog:
    return RoleSpecCatalog.load(_FOLDER / "developer_config.yaml")


def test_roles_come_in_the_catalogs_order(original: RoleSpecCatalog) -> None:
    assert [role.name for role in original.roles] == ["planner", "architect", "implementer", "integrator"]
    assert original.dependencies() == {
        "planner": (),
        "architect": ("planner",),
        "implementer": ("architect",),
        "integrator": ("implementer",),
    }


def test_all_files_are_listed(original: RoleSpecCatalog) -> None:
    assert [path.relative_to(_FOLDER).as_posix() for path in original.files] == [
        "developer_config.yaml",
        "roles/planner.yaml",
        "roles/implementer.yaml",
        "roles/integrator.yaml",
        "prompts/architect.txt",
        "skills/python-architect/SKILL.md",
        "skills/uml/SKILL.md",
    ]


def test_defaults_file_and_entry_are_merged_key_by_key(original: RoleSpecCatalog) -> None:
    implementer = original.role("implementer")
    assert implementer.prompt_flags.allow_write  # the file's
    assert implementer.prompt_flags.allow_file_suggestions  # the entry's, over the file's
    assert implementer.behaviors.apply_files
    assert implementer.sandbox == "workspace-write"
    assert implementer.source == _FOLDER / "roles/implementer.yaml"


def test_blank_and_empty_keys_count_as_not_given(original: RoleSpecCatalog) -> None:
    planner = original.role("planner")
    assert (planner.model, planner.model_env, planner.skills) == (None, "PLANNER_MODEL", ())
    assert planner.reasoning_effort == "medium"
    assert original.role("integrator").reasoning_effort == "high"


def test_prompt_text_beats_prompt_file(original: RoleSpecCatalog) -> None:
    assert original.role("planner").prompt_text.startswith("Du bist PLANNER.")
    assert original.role("architect").prompt_text == "Du bist ARCHITECT.\nEntwirf die Lösung.\n"


def test_hints_keep_their_braces(original: RoleSpecCatalog) -> None:
    assert "tasks: [ { id: <string>, title: <string>, priority: <int> } ]" in original.role("planner").schema_hint
    assert original.role("implementer").schema_hint == (
        "SCHEMA (implementer):\nsummary: <string>\nfiles: [ { path: <string>, content: <string> } ]\n"
        "requests: { need_more_context: <bool>, files: [<string>] }\n"
    )
    assert original.role("integrator").schema_hint.endswith("status: <DONE|CONTINUE>\n{ frei: {} }\n")


def test_prompt_has_the_catalogs_language_and_order(original: RoleSpecCatalog) -> None:
    prompt = build_prompt(
        original.general_prompts, original.role("architect"), "Römische Zahlen", {"tasks": ["ü"]}, {"failed": 1}
    )
    assert prompt == (
        "Rolle: architect\n\n"
        "Du bist ARCHITECT.\nEntwirf die Lösung.\n\n"
        "Ziel:\nRömische Zahlen\n\n"
        'Eingabe (gekürztes JSON):\n{\n  "tasks": [\n    "ü"\n  ]\n}\n\n'
        'LATEST TEST RESULT (JSON, measured by the controller):\n{\n  "failed": 1\n}\n\n'
        "REGELN:\n"
        "- You may use tools and run commands.\n"
        "- You may read files. You must not write, move or delete files.\n"
        "- Use these skills: $python-architect, $uml\n"
        "- Die Analyse steht nur im Feld analysis_md.\n\n"
        "FORMATVERTRAG:\n- Antworte mit genau einem JSON-Objekt.\n"
        '- Bei Unklarheit: { "error": "<Grund>" }\n\n'
        "SCHEMA (architect, allgemein):\nsummary: <string>\nstatus: <DONE|CONTINUE>\n{ frei: {} }\n"
    )


def test_own_texts_of_a_catalog_leave_out_all_shipped_ones(original: RoleSpecCatalog) -> None:
    """In every prompt that a role can get."""
    parts = [key for key in missing_parts(GeneralPrompts()) if not key.startswith("capability_rules.")]
    own = dict.fromkeys(parts, "Eigener Text {goal}{task}{earlier}{input}{tests}{schema}{needed}{file}")
    rules = dict.fromkeys(CapabilityRules.model_fields, "Eigene Regel {skills}{tools}")
    texts = completed(GeneralPrompts.model_validate({**own, "capability_rules": rules}))
    catalog = replace(original, general_prompts=texts)
    for role in catalog.roles:
        prompts = [build_prompt(catalog.general_prompts, role, "g", {"a": 1}, {"b": 1}, earlier=[{"c": 1}])]
        prompts += [
            build_repair_prompt(catalog.general_prompts, role, "p"),
            build_continue_prompt(catalog.general_prompts, role),
        ]
        assert not re.search(r"\b(the|you|your|must|may|these|answer)\b", "\n".join(prompts), re.IGNORECASE)


def test_what_has_no_effect_or_is_english_is_noted(original: RoleSpecCatalog) -> None:
    english, policy, unused = original.notes
    assert english.startswith("general_prompts: the shipped English texts are used for task_section, earlier_section")
    assert "analysis" not in english
    assert "capability_rules.tools_allowed" in english
    assert policy == 'integrator: timeout_policy "planer" has the limits of "default"; did you mean "planner"?'
    assert unused == "behaviors: can_request_clarification, is_orchestrator, reports_to have no effect here"


def test_repair_prompt_holds_problem_contract_and_hint(original: RoleSpecCatalog) -> None:
    prompt = build_repair_prompt(original.general_prompts, original.role("planner"), "kein JSON: {")
    assert prompt.startswith("Rolle: planner\n\n")
    parts = ["kein JSON: {", "exactly one JSON object", "FORMATVERTRAG:", "SCHEMA (planner):"]
    assert sorted(parts, key=prompt.index) == parts
