"""The YAML definitions: roles, flows and prompts as frozen models; every mistake has its file, line and name."""

from __future__ import annotations

from codex_multi_role.catalog.catalog import CATALOG_FILES, RoleSpecCatalog
from codex_multi_role.catalog.flow_inputs import GoalSpec, InputSpec
from codex_multi_role.catalog.flow_loading import FlowEntry, asked_role_files, list_flows, read_flows
from codex_multi_role.catalog.flow_spec import FlowSpec
from codex_multi_role.catalog.prompts import (
    CapabilityRules,
    GeneralPrompts,
    answer_shape,
    build_continue_prompt,
    build_prompt,
    build_repair_prompt,
    fill,
    instructions_digest,
)
from codex_multi_role.catalog.role_spec import RoleLimits, RoleSpec, without_wider_rights
from codex_multi_role.catalog.skills import KEPT_SKILLS
from codex_multi_role.catalog.source_files import settings_file
from codex_multi_role.catalog.step_spec import EVERY_ROLE, RouteSpec, StepSpec
from codex_multi_role.catalog.templates import render
from codex_multi_role.reading.yaml_source import load_yaml, read_text, validate

__all__ = [
    "CATALOG_FILES",
    "EVERY_ROLE",
    "KEPT_SKILLS",
    "CapabilityRules",
    "FlowEntry",
    "FlowSpec",
    "GeneralPrompts",
    "GoalSpec",
    "InputSpec",
    "RoleLimits",
    "RoleSpec",
    "RoleSpecCatalog",
    "RouteSpec",
    "StepSpec",
    "answer_shape",
    "asked_role_files",
    "build_continue_prompt",
    "build_prompt",
    "build_repair_prompt",
    "fill",
    "instructions_digest",
    "list_flows",
    "load_yaml",
    "read_flows",
    "read_text",
    "render",
    "settings_file",
    "validate",
    "without_wider_rights",
]
