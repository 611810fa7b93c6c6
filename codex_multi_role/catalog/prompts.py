"""Builds a role's prompts from the parts of its catalog, in one fixed order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from codex_multi_role.catalog.catalog import RoleSpecCatalog
from codex_multi_role.catalog.placeholders import fill
from codex_multi_role.catalog.role_spec import RoleSpec


def build_prompt(
    catalog: RoleSpecCatalog,
    role: RoleSpec,
    goal: str,
    payload: Mapping[str, object] | None = None,
    tests: Mapping[str, object] | None = None,
    *,
    earlier: Sequence[Mapping[str, object]] = (),
) -> str:
    """The prompt of a turn.

    ``payload``: the incoming handoff; ``tests``: the latest test result; ``earlier``: the role's own last handoffs, for
    a thread that does not remember them. Order: role header (the first line), role instructions, goal, earlier
    handoffs, payload, tests, JSON contract, schema hint, rules. Empty parts are left out.
    """
    texts = catalog.general_prompts
    named = {"role_name": role.name}
    sections = [
        fill(texts.role_header, named),
        role.prompt_text,
        fill(texts.goal_section, named | {"goal": goal}),
        fill(texts.earlier_section, named | {"earlier": _pretty(earlier)}) if earlier else "",
        fill(texts.input_section, named | {"input": _pretty(payload)}) if payload else "",
        fill(texts.tests_section, named | {"tests": _pretty(tests)}) if tests else "",
        *_contract(catalog, role),
        _rules(catalog, role),
    ]
    return _joined(sections)


def build_repair_prompt(catalog: RoleSpecCatalog, role: RoleSpec, problem: str) -> str:
    """The prompt that asks for the last answer again; ``problem`` says what was wrong with it."""
    texts = catalog.general_prompts
    named = {"role_name": role.name}
    repair = fill(texts.repair_section, named | {"problem": problem})
    return _joined([fill(texts.role_header, named), repair, *_contract(catalog, role)])


def build_continue_prompt(catalog: RoleSpecCatalog, role: RoleSpec) -> str:
    """The prompt for a role that stopped before its work was finished."""
    texts = catalog.general_prompts
    named = {"role_name": role.name}
    return _joined([fill(texts.role_header, named), fill(texts.continue_section, named), *_contract(catalog, role)])


def _contract(catalog: RoleSpecCatalog, role: RoleSpec) -> list[str]:
    return [fill(catalog.general_prompts.json_contract, {"role_name": role.name}), role.schema_hint]


def _rules(catalog: RoleSpecCatalog, role: RoleSpec) -> str:
    texts = catalog.general_prompts
    lines = [texts.rules_header, *texts.capability_rules.lines(role), texts.analysis_rules]
    return "\n".join(fill(line.strip("\n"), {"role_name": role.name}) for line in lines if line.strip())


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _joined(sections: Iterable[str]) -> str:
    """Join sections with one blank line between any two, with or without line breaks at their ends.

    A lone surrogate cannot be sent as UTF-8 (Codex drops the line and never answers), so it becomes U+FFFD.
    """
    text = "\n\n".join(section.strip("\n") for section in sections if section.strip()) + "\n"
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
