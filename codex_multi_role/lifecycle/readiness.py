"""What must be in place before a run gets a folder: its input files, a login, and a playbook that fits the team."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpec, RoleSpecCatalog, StepSpec
from codex_multi_role.catalog.flow_spec import ways_out
from codex_multi_role.codex.codex_settings import needs_user_home, user_home
from codex_multi_role.codex.home import LOGIN_FILE, login_state
from codex_multi_role.errors import CodexError, CodexNotLoggedIn, CodexUnavailable, UsageError
from codex_multi_role.lifecycle.definitions import Definitions, role_settings
from codex_multi_role.lifecycle.placement import is_elsewhere
from codex_multi_role.reading.nearest import did_you_mean
from codex_multi_role.version import __version__
from codex_multi_role.workspace import Workspace
from codex_multi_role.workspace.file_copies import copied_paths
from codex_multi_role.workspace.removal import make_room
from codex_multi_role.workspace.run_worktree import require_repository

if TYPE_CHECKING:
    from codex_multi_role.playbook import Playbook


def require_ready(definitions: Definitions) -> None:
    """Raise `UsageError` or `CodexNotLoggedIn` if a run of these definitions cannot succeed."""
    require_paths(definitions)
    copied_paths(Workspace(definitions.workspace), definitions.needs.copy)  # raises for one that leads outside
    if (definitions.options.place.worktree or definitions.isolates) and not is_elsewhere(definitions.options):
        make_room(definitions.workspace)
    if definitions.options.place.worktree:
        require_repository(definitions.workspace, definitions.options.place.branch or "")
    if definitions.playbook is not None:
        require_fitting_playbook(definitions)
    elif definitions.stand_in is None:
        _require_login(definitions)


def require_paths(definitions: Definitions) -> None:
    """Check the inputs that must be existing files or folders of the workspace. Raises `UsageError`."""
    flow = definitions.flow
    for name, spec in flow.inputs.items():
        given = definitions.inputs[name]
        path = definitions.workspace / str(given)
        if spec.must_exist and given and not _exists(path):
            near = did_you_mean(path.name, _names_beside(path))
            raise UsageError(
                f"flow {flow.name}: the input {name} is not in the workspace: {path}{near}",
                f"Set it to a path relative to the workspace, --input {name}=PATH, or use another --workspace.",
            )


def _exists(path: Path) -> bool:
    with suppress(OSError):  # such as a name that is too long
        return path.exists()
    return False


def _names_beside(path: Path) -> list[str]:
    with suppress(OSError):
        return [each.name for each in path.parent.iterdir()]
    return []


def _require_login(definitions: Definitions) -> None:
    """Ask Codex who is logged in, unless the user's home has a login. Raises `CodexNotLoggedIn`."""
    settings = ((*role_settings(role), *definitions.options.answers.config) for role in definitions.roles)
    needy = next(filter(needs_user_home, settings), None)
    if needy is None or (user_home(os.environ) / LOGIN_FILE).exists():
        return
    try:
        login_state(definitions.codex, needy, __version__)
    except CodexNotLoggedIn:
        raise
    except (CodexError, CodexUnavailable):  # the run reports it, with what Codex logged
        return


def require_fitting_playbook(definitions: Definitions) -> None:
    """Check that the playbook has answers for the roles that its run certainly asks. Raises `UsageError`."""
    playbook: Playbook = definitions.playbook
    played = playbook.roles.keys()
    if playbook.default is not None or not definitions.roles:
        return
    asked = dict.fromkeys(_asked_first(definitions.flow, definitions.catalog, playbook))
    missing = [name for name in asked if name not in played]
    if not missing and played and played.isdisjoint(role.name for role in definitions.roles):
        missing = [role.name for role in definitions.roles]
    if missing:
        raise UsageError(
            f"the playbook {playbook.name} cannot play this team: it has no answers for {', '.join(missing)}",
            f"It has answers for {', '.join(played) or 'no role'}. Add the missing ones to {playbook.source}, or "
            "use the team that it was written for (--roles).",
        )


def _asked_first(flow: FlowSpec, catalog: RoleSpecCatalog, playbook: Playbook) -> Iterator[str]:
    """The roles that are asked before the first condition, and before a role that may end the run."""
    step: StepSpec | None = flow.steps[0]
    seen = set[str]()
    while step is not None and step.id not in seen and step.review is None and step.call is None:
        seen.add(step.id)
        if step.ask is not None and step.for_each is None:
            names = _asked_in_team(catalog, playbook) if step.ask == EVERY_ROLE else [step.ask]
            yield from names
            if any(_may_end(catalog.role(name), playbook) for name in names):
                return
        way = ways_out(flow, flow.steps.index(step))[0]
        step = flow.step(way.to) if way.when is None and way.to is not None else None


def _asked_in_team(catalog: RoleSpecCatalog, playbook: Playbook) -> list[str]:
    """The roles that do not wait for one that may end the run."""
    waits_for = catalog.dependencies()
    asked: list[str] = []
    for name in TopologicalSorter(waits_for).static_order():
        if all(each in asked and not _may_end(catalog.role(each), playbook) for each in waits_for[name]):
            asked.append(name)
    return asked


def _may_end(role: RoleSpec, playbook: Playbook) -> bool:
    """Whether the role's first answer may end the run: DONE, or a failure."""
    if role.name not in playbook.roles:
        return False
    first = playbook.roles[role.name][:1]
    text = " ".join(entry.model_dump_json(exclude_unset=True) for entry in first)
    return not first or '"fault"' in text or (role.behaviors.can_finish and "done" in text.casefold())
