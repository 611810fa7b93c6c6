"""Checks all files of a team at once: the catalog, the roles, and the flows and playbooks beside it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog, list_flows, read_flows
from codex_multi_role.catalog.flow_references import unsent_roles
from codex_multi_role.errors import UsageError
from codex_multi_role.flow.routing import relies_on_done
from codex_multi_role.lifecycle.team_loading import (
    check_without_roles,
    load_catalog,
    load_flow_and_called,
    roles_folder,
)
from codex_multi_role.playbook import list_playbooks, load_playbook
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.shipped import packaged_roles


def load_checked_team(given: Path | None) -> RoleSpecCatalog:
    """Load the catalog that ``--roles`` names. Raises one `DefinitionError` for all mistakes in the team's files."""
    problems = Problems()
    folder = roles_folder(given)
    catalog: RoleSpecCatalog | None = None
    with problems.collected():
        catalog = load_catalog(given)
    for name in own_flows(folder):
        with problems.collected():
            if catalog is None:
                check_without_roles(name, folder)
            else:
                load_flow_and_called(name, catalog)
    with problems.collected():
        check_playbooks(folder)
    problems.raise_found()
    return catalog or load_catalog(given)


def own_flows(folder: Path) -> list[str]:
    """The names of the flows beside the catalog; the shipped ones, which may need systems, are nobody's own."""
    if folder.resolve() == packaged_roles().resolve():
        return []
    return [entry.name for entry in list_flows(folder) if entry.source.parent.parent == folder]


def unsent_in_own_flows(catalog: RoleSpecCatalog) -> list[tuple[str, str]]:
    """The roles of the catalog, each with a warning of `unsent_roles`, about the flows beside it that can be read."""
    folder, warnings = catalog.source.parent, dict[tuple[str, str], None]()
    for name in own_flows(folder):
        with suppress(UsageError):
            warnings |= dict.fromkeys(unsent_roles(read_flows(name, folder), catalog).items())
    return [*warnings]


def check_playbooks(folder: Path) -> None:
    """Load every playbook beside the catalog. Raises one `DefinitionError` for all mistakes."""
    problems = Problems()
    for path in list_playbooks(folder).values():
        if path.parent.parent == folder:
            with problems.collected():
                load_playbook(str(path))
    problems.raise_found()


def require_finish(flow: FlowSpec, catalog: RoleSpecCatalog) -> None:
    """Raise `DefinitionError` if only a role's DONE can end the flow with its goal, and no role may say it."""
    asked = {role for step in flow.steps for role in step.asked}
    roles = [role for role in catalog.roles if "*" in asked or role.name in asked]
    if relies_on_done(flow) and not any(role.behaviors.can_finish for role in roles):
        raise Place(catalog.source, ("roles",)).error(
            f"no role can finish: the flow {flow.name} reaches its goal only if a role says DONE",
            "Set behaviors: {can_finish: true} for the role that decides when the goal is reached.",
        )
