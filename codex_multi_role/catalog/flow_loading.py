"""Find and load flows: ``<roles dir>/flows/<name>.yaml`` first, then the packaged ones.

Roles that a flow asks but the catalog does not list have a file of their name, so a flow can bring its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.catalog.catalog import RoleSpecCatalog
from codex_multi_role.catalog.flow_inputs import GoalSpec, InputSpec
from codex_multi_role.catalog.flow_references import StepFields, any_field, check_calls, check_references
from codex_multi_role.catalog.flow_spec import FlowFile, FlowSpec, step_place
from codex_multi_role.catalog.flow_steps import check_steps
from codex_multi_role.catalog.source_files import packaged_roles
from codex_multi_role.catalog.step_spec import EVERY_ROLE, STEP_KINDS, RouteSpec, StepSpec
from codex_multi_role.catalog.unfillable_templates import check_fillable
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.reading.nearest import no_such
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.yaml_source import load_yaml, validate

__all__ = [
    "EVERY_ROLE",
    "STEP_KINDS",
    "FlowEntry",
    "FlowSpec",
    "GoalSpec",
    "InputSpec",
    "RouteSpec",
    "StepSpec",
    "check_flows",
    "list_flows",
    "load_flow",
    "load_flows",
    "read_flows",
]


@dataclass(frozen=True)
class FlowEntry:
    """An available flow. ``flow``: the content of its file, or None with the ``problem`` why it cannot be read."""

    name: str
    source: Path
    flow: FlowSpec | None = None
    problem: str = ""

    @property
    def description(self) -> str:
        return self.flow.description if self.flow is not None else ""

    @property
    def is_internal(self) -> bool:
        return self.flow is not None and self.flow.internal


def load_flow(name: str, roles_dir: Path | None, catalog: RoleSpecCatalog) -> FlowSpec:
    """The flow with that name; checks and raises like ``load_flows``."""
    return load_flows(name, roles_dir, catalog)[name]


def load_flows(name: str, roles_dir: Path | None, catalog: RoleSpecCatalog) -> dict[str, FlowSpec]:
    """The flow ``name`` and every flow it calls, directly or not, by name; the requested one is the first.

    Raises ``UsageError`` with the nearest name if it is unknown, one ``DefinitionError`` for all mistakes in
    them: unknown keys, roles, steps, flows, inputs or template names, templates that do not parse,
    unreachable steps, endless calls.
    """
    flows = read_flows(name, roles_dir)
    check_flows(flows, catalog)
    return flows


def read_flows(name: str, roles_dir: Path | None) -> dict[str, FlowSpec]:
    """Read the flows of `load_flows` without checking their steps."""
    sources = _sources(roles_dir)
    if name not in sources:
        raise UsageError(*no_such("flow", name, sorted(sources)))
    flows: dict[str, FlowSpec] = {}
    problems = Problems()
    seen, waiting = set[str](), [name]
    while waiting:
        if (wanted := waiting.pop(0)) not in seen:
            seen.add(wanted)
            with problems.collected():
                flows[wanted] = _read(sources[wanted])
                waiting += _called(flows[wanted], sources, problems)
    problems.raise_found()
    return flows


def check_flows(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog, fields: StepFields = any_field) -> None:
    """Check the steps, what depends on several flows or on the roles, and that templates use known ``fields``.

    Raises ``DefinitionError`` like `load_flows`.
    """
    problems = Problems()
    for flow in flows.values():
        with problems.collected():
            check_steps(flow)
        with problems.collected():
            check_references(flow, catalog, fields)
    with problems.collected():
        check_calls(flows)
    problems.raise_found()
    for flow in flows.values():
        with problems.collected():
            check_fillable(flow)
    problems.raise_found()


def list_flows(roles_dir: Path | None) -> tuple[FlowEntry, ...]:
    """All flows by name; one in ``roles_dir`` hides a packaged one of the same name."""
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
        raise Place(source, ("name",)).error(
            f'"{written.name}", but a flow has its file\'s name, "{source.stem}"',
            "Rename the file, or leave the name out.",
        )
    return FlowSpec.model_validate(dict(written) | {"name": source.stem, "source": source})


def _called(flow: FlowSpec, sources: Mapping[str, Path], problems: Problems) -> Iterator[str]:
    for index, step in enumerate(flow.steps):
        if step.call is None:
            continue
        if step.call in sources:
            yield step.call
        with problems.collected():
            if step.call not in sources:
                raise (step_place(flow, index) / "call").unknown("flow", step.call, sorted(sources))


def _entry(name: str, source: Path) -> FlowEntry:
    try:
        flow = _read(source)
        check_steps(flow)
        return FlowEntry(name, source, flow)
    except DefinitionError as error:
        return FlowEntry(name, source, problem=str(error))


CATALOG = "catalog"


def asked_role_files(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog) -> tuple[Path, ...]:
    """``<role>.yaml`` of each role that ``flows`` ask beyond the catalog: beside it, otherwise the packaged one.

    A role without such a file is left out.
    """
    known = {EVERY_ROLE, CATALOG, *(role.name for role in catalog.roles)}
    asked = dict.fromkeys(step.ask for flow in flows.values() for step in flow.steps if step.ask is not None)
    return tuple(_files([name for name in asked if name not in known], (catalog.source.parent, packaged_roles())))


def _files(names: list[str], folders: tuple[Path, ...]) -> Iterator[Path]:
    for name in names:
        candidates = (folder / f"{name}.{ending}" for folder in folders for ending in ("yaml", "yml"))
        yield from [file for file in candidates if file.is_file()][:1]
