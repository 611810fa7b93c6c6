"""Live reload of roles: changes saved in their files apply from each role's next turn. Those of flows are reported."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from codex_multi_role.catalog import RoleSpec, RoleSpecCatalog, without_wider_rights
from codex_multi_role.errors import CodexMultiRoleError, DefinitionError
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.lifecycle.kept_definitions import keep_changed_roles
from codex_multi_role.lifecycle.members import SET_UP_BY
from codex_multi_role.lifecycle.team_loading import CheckedTeam, changed_catalog
from codex_multi_role.run_folder import EventLog, RunFolder
from codex_multi_role.run_folder.events import RolesReloaded, Warning

if TYPE_CHECKING:
    from codex_multi_role.lifecycle.corrected_flows import FlowEdits

LOOK_SECONDS = 1.0
JOIN_SECONDS = 5.0
FIXED = ("depends_on", "tools", "max_steps", "behaviors.can_finish")
"""Keys of a role that a run keeps, because its order, conversations, journal and end depend on them."""

WiderRights = dict[str, list[str]]
"""By role, the keys whose new values would have allowed it more."""


def named_keys(wider: WiderRights) -> str:
    return ", ".join(f"role {name}: {' and '.join(keys)}" for name, keys in wider.items())


@dataclass
class LiveRoles:
    """``catalog`` is the current catalog, ``source`` the catalog file that people edit.

    ``catalog_file``: the run's copy of it, relative to its ``catalog/``. ``keep`` is called with each new copy, which a
    resumed run uses, and with the rights that were refused. ``renew`` is called with each role whose process has to be
    set up again.
    """

    definitions: Definitions
    source: Path
    catalog_file: str
    folder: RunFolder
    events: EventLog
    keep: Callable[[str, WiderRights], None]
    renew: Callable[[str], None] = lambda role: None

    def __post_init__(self) -> None:
        self._latest = self.definitions.catalog
        self._last_warning = ""
        self._pending_error = ""  # an error in the files, perhaps because they are still being written
        self._flow_edits: FlowEdits | None = None
        self._ended = threading.Event()

    @property
    def catalog(self) -> RoleSpecCatalog:
        return self.definitions.catalog

    @property
    def kept_folder(self) -> Path:
        """The folder of the run's copy of ``catalog``."""
        return (self.folder.catalog_path / self.catalog_file).parent

    @contextmanager
    def following(self) -> Iterator[None]:
        """Apply changes that are saved within the block."""
        follower = threading.Thread(target=self._follow, name="role-files", daemon=True)
        follower.start()
        try:
            yield
        finally:
            self.stop_soon()
            follower.join(JOIN_SECONDS)
            self._report_flows()

    def stop_soon(self) -> None:
        """Apply no more changes; the end of the block in `following` waits for this."""
        self._ended.set()

    def _follow(self) -> None:
        if not self.source.exists():
            return  # nobody can edit it: a team written in Python, or a folder that was removed before a resume
        from codex_multi_role.lifecycle.corrected_flows import FlowEdits  # here: the processes start meanwhile

        try:
            self._flow_edits = FlowEdits(self.definitions, self.source)
            if self.source != self.catalog.source.resolve():  # a resumed run ignores earlier edits
                self._latest = changed_catalog(self.source, self.catalog)
            if not self._ended.wait(LOOK_SECONDS):
                self._watch()
        except (OSError, CodexMultiRoleError) as error:
            self._warn(f"changes of {self.source} cannot be watched: {error}")

    def _watch(self) -> None:
        from codex_multi_role.host.watched_files import WatchedFolders  # here: the first prompts do not wait for it

        flows = self._flow_edits.files if self._flow_edits else ()
        with WatchedFolders(
            lambda: {file.parent for file in (*self._latest.files, *self._latest.role_files, *flows)}
        ) as watched:
            self.reload()  # a file may have been saved before it was watched
            while not self._ended.wait(LOOK_SECONDS):  # waits: for changes, ended with the run
                if watched.have_changed(self._ended.wait) or self._pending_error:
                    self.reload()
                    self._report_flows()

    def _report_flows(self) -> None:
        if self._flow_edits is not None and self._flow_edits.found():
            self._warn(
                f"the flow {self.definitions.options.flow} was edited; the run continues with its own copy. "
                "If the run is resumed, it uses the edited flow, provided that it fits what was recorded by then"
            )

    def reload(self) -> None:
        """Apply the files as they are now. An error in them is reported only if a second look finds the same error."""
        pending, self._pending_error = self._pending_error, ""
        try:
            read = changed_catalog(self.source, self.catalog)
            names, others = ([role.name for role in each.roles] for each in (read, self._latest))
            if names != others or _changes(self._latest, read):
                self._take(read)
                self._latest = read
        except CodexMultiRoleError as error:
            if str(error) == pending:
                self._warn(f"the roles are not reloaded: {error}")
            else:
                self._pending_error = str(error)

    def _take(self, read: RoleSpecCatalog) -> None:
        before = self.catalog
        _require_same_roles(before, read)
        taken, wider = _without_wider_rights(before, read)
        changed = _changes(before, taken)
        definitions = replace(self.definitions, team=CheckedTeam(self.definitions.team.flows, taken)).checked()
        _require_possible(taken, changed)
        self.catalog_file = keep_changed_roles(read, self.folder, self.catalog_file)
        self.keep(self.catalog_file, wider)
        if changed:
            self.events.publish(RolesReloaded(changed, self.catalog_file))
        self.definitions = definitions
        for name in changed:
            if not SET_UP_BY.isdisjoint(key.partition(".")[0] for key in changed[name]):
                self.renew(name)
        if wider:
            self._warn(
                f"{named_keys(wider)}: a running run never extends what a role may do, so the old values remain; "
                "stop and resume the run to apply the new ones"
            )

    def _warn(self, message: str) -> None:
        if message != self._last_warning:
            self._last_warning = message
            self.events.publish(Warning(message))


def _require_same_roles(before: RoleSpecCatalog, after: RoleSpecCatalog) -> None:
    then, now = ([role.name for role in each.roles] for each in (before, after))
    if set(then) != set(now):
        raise DefinitionError(
            f"{after.source}: a run keeps its roles, {', '.join(then)}; it has {', '.join(now)} now",
            "Start another run for that.",
        )


def _without_wider_rights(before: RoleSpecCatalog, after: RoleSpecCatalog) -> tuple[RoleSpecCatalog, WiderRights]:
    """``after`` with at most the rights that each role had ``before``, and the refused keys by role."""
    judged = [without_wider_rights(before.role(role.name), role) for role in after.roles]
    wider = {role.name: keys for role, keys in judged if keys}
    return replace(after, roles=tuple(role for role, _ in judged)), wider


def _changes(before: RoleSpecCatalog, after: RoleSpecCatalog) -> dict[str, list[str]]:
    """The keys that differ, by role; ``general_prompts`` belong to every role."""
    common = ["general_prompts"] if before.general_prompts != after.general_prompts else []
    found = {role.name: [*_differing(before.role(role.name), role), *common] for role in after.roles}
    for name, keys in found.items():
        if "skills" not in keys and any(before.skills[each] != after.skills[each] for each in after.role(name).skills):
            keys.append("skills")
    return {name: keys for name, keys in found.items() if keys}


def _differing(then: RoleSpec, now: RoleSpec) -> list[str]:
    old, new = _fields(then), _fields(now)
    return [key for key in new if old[key] != new[key]]


def _fields(role: RoleSpec) -> dict[str, Any]:
    """The role's keys, nested ones with dots: ``limits.turn_seconds``."""
    found: dict[str, Any] = {}
    for key, value in role:
        nested = value.model_dump() if isinstance(value, BaseModel) else {}
        found |= {f"{key}.{name}": each for name, each in nested.items()} if nested else {key: value}
    found.pop("source")
    return found


def _require_possible(after: RoleSpecCatalog, changed: dict[str, list[str]]) -> None:
    for name, keys in changed.items():
        if fixed := [key for key in keys if key in FIXED]:
            place = f"{after.role(name).source}: role {name}"
            raise DefinitionError(f"{place}: a run keeps {', '.join(fixed)}", "Start another run for that.")
