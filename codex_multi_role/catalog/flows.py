"""Finding and loading flows: ``<roles dir>/flows/<name>.yaml`` first, the packaged ones after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.catalog.catalog import RoleSpecCatalog
from codex_multi_role.catalog.flow_inputs import InputSpec
from codex_multi_role.catalog.flow_references import check_references, check_steps
from codex_multi_role.catalog.flow_spec import EVERY_ROLE, STEP_KINDS, FlowFile, FlowSpec, Route, StepSpec
from codex_multi_role.catalog.nearest import no_such
from codex_multi_role.catalog.packaged import packaged_roles
from codex_multi_role.catalog.yaml_source import load_yaml, validate
from codex_multi_role.errors import DefinitionError, UsageError

__all__ = [
    "EVERY_ROLE",
    "STEP_KINDS",
    "FlowEntry",
    "FlowSpec",
    "InputSpec",
    "Route",
    "StepSpec",
    "list_flows",
    "load_flow",
]


@dataclass(frozen=True)
class FlowEntry:
    """A flow that could be run. ``problem``: why its file cannot be read, or an empty string."""

    name: str
    source: Path
    description: str = ""
    problem: str = ""


def load_flow(name: str, roles_dir: Path | None, catalog: RoleSpecCatalog) -> FlowSpec:
    """The flow called ``name``, checked against the catalog's roles.

    Raises ``UsageError`` with the nearest name when there is none, ``DefinitionError`` with file and key path when
    something in it is wrong: unknown keys, roles, steps or template names, templates that do not parse.
    """
    sources = _sources(roles_dir)
    if name not in sources:
        raise UsageError(*no_such("flow", name, sorted(sources)))
    flow = _read(sources[name])
    check_references(flow, catalog)
    return flow


def list_flows(roles_dir: Path | None) -> tuple[FlowEntry, ...]:
    """All flows by name; one of ``roles_dir`` hides a packaged one of the same name."""
    sources = _sources(roles_dir)
    return tuple(_entry(name, sources[name]) for name in sorted(sources))


def _sources(roles_dir: Path | None) -> dict[str, Path]:
    folders = [packaged_roles(), *([roles_dir] if roles_dir is not None else [])]
    files = [
        file for folder in folders for ending in ("yml", "yaml") for file in (folder / "flows").glob(f"*.{ending}")
    ]
    return {file.stem: file for file in files}  # a later one hides an earlier one


def _read(source: Path) -> FlowSpec:
    written = validate(FlowFile, load_yaml(source), source)
    if written.name not in (None, source.stem):
        raise DefinitionError(
            f'{source}: name: "{written.name}", but a flow has its file\'s name, "{source.stem}"',
            "Rename the file, or leave the name out.",
        )
    flow = FlowSpec.model_validate(dict(written) | {"name": source.stem, "source": source})
    check_steps(flow)
    return flow


def _entry(name: str, source: Path) -> FlowEntry:
    try:
        return FlowEntry(name, source, _read(source).description)
    except DefinitionError as error:
        return FlowEntry(name, source, problem=str(error))
