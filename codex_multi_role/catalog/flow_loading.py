"""Find and load flows: ``<roles dir>/flows/<name>.yaml`` first, then the shipped ones, then those of extensions.

Roles that a flow asks but the catalog does not list have a file of their name, so a flow can bring its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from codex_multi_role.catalog.catalog import RoleSpecCatalog
from codex_multi_role.catalog.definition import yaml_key
from codex_multi_role.catalog.flow_spec import FlowFile, FlowSpec, step_place
from codex_multi_role.catalog.flow_steps import check_steps
from codex_multi_role.catalog.step_spec import EVERY_ROLE
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.reading.former_keys import rewrite
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.shipped import (
    FLOWS,
    definition_folders,
    find_definition,
    list_definitions,
    no_such_definition,
)
from codex_multi_role.reading.yaml_source import load_yaml, validate


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


def read_flows(name: str, roles_dir: Path | None) -> dict[str, FlowSpec]:
    """The flow ``name`` and every flow it calls, directly or not, by name; the requested one is the first.

    Raises ``UsageError`` with the nearest name if it is unknown, one ``DefinitionError`` for all unknown keys and flows
    in them. Their steps are not checked.
    """
    source = find_definition(FLOWS, name, roles_dir)
    if source is None:
        raise UsageError(*no_such_definition(FLOWS, name, list_definitions(FLOWS, roles_dir), roles_dir))
    flows: dict[str, FlowSpec] = {}
    problems = Problems()
    seen, waiting = set[Path](), [source]
    while waiting:
        if (wanted := waiting.pop(0)) not in seen:
            seen.add(wanted)
            with problems.collected():
                flows[wanted.stem] = flow = _read(wanted)
                waiting += _called(flow, roles_dir, problems)
    problems.raise_found()
    return flows


def list_flows(roles_dir: Path | None) -> tuple[FlowEntry, ...]:
    """All flows by name; one in ``roles_dir`` hides a shipped one of the same name."""
    return tuple(_entry(name, source) for name, source in list_definitions(FLOWS, roles_dir).items())


def _read(source: Path) -> FlowSpec:
    former: list[str] = []
    written = validate(FlowFile, load_yaml(source, lambda node: former.extend(rewrite(node))), source)
    if written.name not in (None, source.stem):
        raise Place(source, ("name",)).error(
            f'"{written.name}", but a flow has its file\'s name, "{source.stem}"',
            "Rename the file, or leave the name out.",
        )
    keys = {yaml_key(name): value for name, value in written}
    return FlowSpec.model_validate(keys | {"name": source.stem, "source": source, "former_keys": former})


def _called(flow: FlowSpec, roles_dir: Path | None, problems: Problems) -> Iterator[Path]:
    for index, step in enumerate(flow.steps):
        if step.call is None:
            continue
        if source := find_definition(FLOWS, step.call, roles_dir):
            yield source
            continue
        with problems.collected():
            known = list_definitions(FLOWS, roles_dir)
            unknown = no_such_definition(FLOWS, step.call, known, roles_dir)
            raise (step_place(flow, index) / "call").error(*unknown)


def _entry(name: str, source: Path) -> FlowEntry:
    try:
        flow = _read(source)
        check_steps(flow)
        return FlowEntry(name, source, flow)
    except DefinitionError as error:
        return FlowEntry(name, source, problem=str(error))


CATALOG = "catalog"


def asked_role_files(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog) -> tuple[Path, ...]:
    """``<role>.yaml`` of each role that ``flows`` ask beyond the catalog: beside it, the flow's own, or a shipped one.

    A role without such a file is left out.
    """
    known = {EVERY_ROLE, CATALOG, *(role.name for role in catalog.roles)}
    asked = {role: flow for flow in flows.values() for step in flow.steps for role in step.asked}
    beside = catalog.source.parent
    found = (_role_file(name, beside, flow.source.parent.parent) for name, flow in asked.items() if name not in known)
    return tuple(filter(None, found))


def _role_file(name: str, *own: Path) -> Path | None:
    folders = chain(own, definition_folders())
    files = (folder / f"{name}.{ending}" for folder in folders for ending in ("yaml", "yml"))
    return next(filter(Path.is_file, files), None)
