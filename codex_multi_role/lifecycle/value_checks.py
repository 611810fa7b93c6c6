"""Values that no run of a team can make right. A run that was recorded keeps the flows that it has."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import BaseModel

from codex_multi_role.catalog import FlowSpec, RoleSpec, RoleSpecCatalog, StepSpec
from codex_multi_role.catalog.definition import closed_properties
from codex_multi_role.catalog.expression_types import type_of_value
from codex_multi_role.catalog.flow_expressions import has_expressions
from codex_multi_role.catalog.flow_references import item_types, template_types
from codex_multi_role.checks.contract import require_option_values
from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.step_fields import KnownFields
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.value_types import Fields
from codex_multi_role.run_folder import RunFolder

OF_ANY_ANSWER = frozenset({"status", "error"})
"""What an answer may have whatever its schema says."""
SCHEMA_HINT = "Add it to the properties of the schema, or leave it out of the other."


def is_recorded(flow: FlowSpec) -> bool:
    """Whether the flow is a run's own copy, which was judged when the run started."""
    catalog = flow.source.absolute().parent.parent
    folders = RunFolder(catalog.parent), RunFolder(catalog.parent.parent)  # a later copy is in a folder of the first
    return any(catalog.is_relative_to(folder.catalog_path) and folder.record_path.is_file() for folder in folders)


def known_types(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog) -> dict[str, Fields]:
    """By flow, the type of each name that all its templates can use."""
    of_step = KnownFields(flows, catalog).of_step
    types = {name: template_types(flow, catalog, of_step) for name, flow in flows.items()}
    return {name: _names_only(known) if is_recorded(flows[name]) else known for name, known in types.items()}


def _names_only(types: Fields) -> Fields:
    return {name: known.names_only() for name, known in types.items()}


def check_options(step: StepSpec, options: type[BaseModel], place: Place, types: Fields) -> None:
    """Raise `DefinitionError` for a value that the step's check, which has these ``options``, cannot take."""
    seen = item_types(step, types)
    computed = {name: type_of_value(each, seen) for name, each in step.with_.items() if has_expressions(each)}
    given = {name: each for name, each in step.with_.items() if name not in computed}
    try:
        require_option_values(options, given, computed)
    except UsageError as error:
        raise (place / "with").error(f"check {step.check}: {error}", error.hint) from error


def check_closed_schemas(catalog: RoleSpecCatalog, problems: Problems) -> None:
    """Find schemas without the fields that ``apply_files`` takes or that the role's schema hint shows."""
    for index, role in enumerate(catalog.roles):
        in_catalog = role.source == catalog.source
        place = Place(role.source, ("roles", index) if in_catalog else ()) / "output_schema"
        with problems.collected():
            _check_closed_schema(role, place)


def _check_closed_schema(role: RoleSpec, place: Place) -> None:
    listed = closed_properties(role.output_schema or {})
    if listed is None:
        return
    if role.behaviors.apply_files and "files" not in listed:
        raise place.error("forbids files, which behaviors.apply_files writes into the workspace", SCHEMA_HINT)
    if forbidden := sorted(_fields_in_example(role.schema_hint) - listed.keys() - OF_ANY_ANSWER):
        raise place.error(f"forbids {', '.join(forbidden)}, which the schema hint of the role shows", SCHEMA_HINT)


def _fields_in_example(hint: str) -> set[str]:
    """The keys of the JSON object in a schema hint; nothing if it has none, or is a schema itself."""
    try:
        example, _ = json.JSONDecoder().raw_decode(hint[hint.index("{") :])
    except ValueError:
        return set()
    return set(example) if "properties" not in example else set()
