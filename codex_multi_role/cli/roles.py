"""``roles list|show|validate|new``: the roles of a catalog; and doing something again when its files are saved."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from codex_multi_role.catalog import build_prompt, read_flows
from codex_multi_role.catalog.source_files import LOCAL_ROLES
from codex_multi_role.cli.boundary import complain_about
from codex_multi_role.cli.completion import role_names
from codex_multi_role.cli.lazy_group import LazyCommand, LazyGroup
from codex_multi_role.cli.options import JSON, ROLES, command
from codex_multi_role.cli.output import put_json, put_line, put_table, put_yaml, say
from codex_multi_role.cli.tables import Column
from codex_multi_role.errors import UsageError
from codex_multi_role.host.watched_files import WatchedFolders
from codex_multi_role.lifecycle.team_loading import (
    load_catalog,
    load_checked_team,
    own_flows,
    require_finish,
    roles_folder,
    unsent_in_own_flows,
)
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_options import RunOptions

if TYPE_CHECKING:
    from codex_multi_role.catalog import RoleSpec, RoleSpecCatalog

LOOK_SECONDS = 0.2
WATCH = click.option(
    "--watch", is_flag=True, help="Repeat whenever a file in the roles folder is saved; Ctrl-C to stop."
)
COLUMNS = ("role", "model", "effort", "sandbox", "approval", Column("waits for", text=16), Column("file", path=20))

roles = LazyGroup(
    name="roles",
    targets={
        "list": LazyCommand(f"{__name__}:list_roles", "List the roles."),
        "show": LazyCommand(f"{__name__}:show_roles", "Show a role with all its settings."),
        "validate": LazyCommand(f"{__name__}:validate_roles", "Check the catalog."),
    },
    installed=Registry("command below roles", "codex_multi_role.roles_commands", {}),
    help="List, show, check and add the roles of a catalog.",
    no_args_is_help=True,
)


@command(ROLES, JSON, name="list")
def list_roles(roles: Path | None, json: bool) -> None:
    """List the roles in the order of the catalog.

    \b
    Examples:
      codex-multi-role roles list
      codex-multi-role roles list --roles ../shop/roles --json
    """
    catalog = load_catalog(roles)
    if json:
        put_json([role.model_dump(mode="json") for role in catalog.roles])
    else:
        put_table(COLUMNS, [_row(role, catalog) for role in catalog.roles])


def _row(role: RoleSpec, catalog: RoleSpecCatalog) -> list[object]:
    return [
        role.name,
        role.model or (f"${role.model_env}" if role.model_env else ""),
        role.reasoning_effort or "",
        role.sandbox,
        role.approval_policy,
        ", ".join(catalog.dependencies()[role.name]),
        role.source,
    ]


@command(ROLES, JSON, name="show")
@click.argument("name", metavar="ROLE", shell_complete=role_names)
def show_roles(name: str, roles: Path | None, json: bool) -> None:
    """Show ROLE as runs use it, with its defaults, files, limits and sandbox resolved.

    `prompt` is what it is sent, without what a run adds: the goal, the task of a step and the material.

    \b
    Examples:
      codex-multi-role roles show planner
    """
    catalog = load_catalog(roles)
    role = catalog.role(name)
    prompt = build_prompt(catalog.general_prompts, role, "<goal>")
    put = put_json if json else put_yaml
    put({"name": name, **role.model_dump(mode="json"), "prompt": prompt})
    for warned, warning in unsent_in_own_flows(catalog):
        if warned == name:
            say(f"warning: {warning}")


@command(ROLES, name="validate")
@click.argument("names", metavar="[ROLE]...", nargs=-1, shell_complete=role_names)
@WATCH
@click.pass_context
def validate_roles(ctx: click.Context, /, names: tuple[str, ...], roles: Path | None, watch: bool) -> None:
    """Check all files of the team, and that each ROLE is in the catalog. Every mistake is named with its place.

    The files are the catalog, those it refers to, and the flows and playbooks beside it.

    \b
    Examples:
      codex-multi-role roles validate
      codex-multi-role roles validate planner --watch
    """

    def check() -> None:
        catalog = load_checked_team(roles)
        checked = [catalog.role(name).name for name in names] or [role.name for role in catalog.roles]
        put_line(f"ok: {catalog.source}: {', '.join(checked)}")
        for note in catalog.notes:
            say(f"note: {note}")
        for _, warning in unsent_in_own_flows(catalog):
            say(f"warning: {warning}")
        _warn_if_none_can_finish(catalog, str((ctx.default_map or {}).get("flow") or ""))

    repeatedly(roles_folder(roles), check, watch=watch)


def _warn_if_none_can_finish(catalog: RoleSpecCatalog, flow: str) -> None:
    """``flow``: that of the settings, otherwise the team's own flows and the default.

    Only a warning, and a note if the team is probably meant for its own flows.
    """
    folder = catalog.source.parent
    own = own_flows(folder)
    for name in [flow] if flow else dict.fromkeys([*own, str(RunOptions.flow)]):
        try:
            require_finish(read_flows(name, folder)[name], catalog)
        except UsageError as error:
            say(f"{'warning' if flow or name in own or not own else 'note'}: {error}")


def option_for(roles: Path) -> str:
    """Return `` --roles PATH`` to append to a command; nothing for the default folder."""
    return "" if roles == LOCAL_ROLES else f" --roles {shlex.quote(str(roles))}"


def repeatedly(folder: Path, act: Callable[[], None], *, watch: bool) -> None:
    """Call ``act`` once or, with ``watch``, again whenever a file in ``folder`` or one level below it is saved.

    Raises what ``act`` raises; with ``watch``, prints its `UsageError` and raises one if it cannot watch the folder.
    """
    if not watch:
        act()
        return
    try:
        list(folder.iterdir())
    except OSError as error:
        raise UsageError(f"cannot watch {folder}: {error.strerror}", "Run it without --watch.") from error
    with WatchedFolders(lambda: _folders(folder)) as watched:  # before acting: files saved meanwhile count
        while True:  # waits: for changes, ended by the person's Ctrl-C
            try:
                act()
            except UsageError as error:
                complain_about(error)
            say(f"watching {folder} (Ctrl-C to stop)")
            while not watched.have_changed():  # waits: for a saved file, ended by the person's Ctrl-C
                time.sleep(LOOK_SECONDS)


def _folders(folder: Path) -> Iterator[Path]:
    yield folder
    if folder.is_dir():
        yield from (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
