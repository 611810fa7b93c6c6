"""Roles that a flow asks but the catalog does not list: each has a file of its name, so a flow can bring its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from codex_multi_role.catalog.catalog import RoleSpecCatalog
from codex_multi_role.catalog.flow_spec import FlowSpec
from codex_multi_role.catalog.packaged import packaged_roles
from codex_multi_role.catalog.step_spec import EVERY_ROLE

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
