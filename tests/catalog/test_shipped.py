"""The catalog and flows that come with the package."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from codex_multi_role.catalog import RoleSpecCatalog, build_prompt, list_flows
from codex_multi_role.catalog.definition import check_schema
from codex_multi_role.catalog.prompts import CapabilityRules, GeneralPrompts
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.reading.places import Place
from tests.support.catalogs import load_flow


def test_it_has_the_team_of_the_flow_cycles(shipped: RoleSpecCatalog) -> None:
    assert [role.name for role in shipped.roles] == ["planner", "architect", "implementer", "integrator"]
    assert [role.name for role in shipped.roles if role.behaviors.can_finish] == ["integrator"]
    assert [role.name for role in shipped.roles if role.behaviors.apply_files] == ["implementer"]
    assert [role.name for role in shipped.roles if role.behaviors.timeout_policy == "planner"] == ["planner"]
    assert {role.sandbox for role in shipped.roles} == {"read-only"}
    assert shipped.dependencies()["integrator"] == ("implementer",)


def test_shipped_catalog_defines_every_general_prompt(shipped: RoleSpecCatalog) -> None:
    """Other catalogs fall back on these prompts."""
    prompts = shipped.general_prompts
    assert all(getattr(prompts, key) for key in GeneralPrompts.model_fields)
    assert all(getattr(prompts.capability_rules, key) for key in CapabilityRules.model_fields)
    assert prompts.role_header == "Role: {role_name}"


def test_schemas_of_its_team_are_valid(shipped: RoleSpecCatalog) -> None:
    """Loading does not check them."""
    for role in shipped.roles:
        check_schema(role.output_schema, Place(role.source))


def test_all_its_flows_load(shipped: RoleSpecCatalog) -> None:
    for entry in list_flows(None):
        assert entry.problem == ""
        assert entry.description
    assert load_flow("cycles", None, shipped).steps


@pytest.mark.real
def test_loading_it_imports_neither_jinja2_nor_jsonschema() -> None:
    code = (
        "import sys; from codex_multi_role.catalog import RoleSpecCatalog;"
        "from codex_multi_role.reading.shipped import packaged_roles;"
        "RoleSpecCatalog.load(packaged_roles()); print([m for m in ('jinja2', 'jsonschema') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "[]\n"


@pytest.mark.extensions
def test_flow_role_is_shown_its_output_schema_only() -> None:
    catalog = load_team("plan-solve", None)[1]
    solver = catalog.role("solver")
    prompt = build_prompt(catalog.general_prompts, solver, "g")
    assert json.loads(prompt.partition("not the schema:\n")[2]) == solver.output_schema
