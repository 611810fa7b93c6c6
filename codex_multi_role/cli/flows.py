"""``flows list|show|validate``: the flows of a catalog, and the shipped ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from codex_multi_role.cli.boundary import complain
from codex_multi_role.cli.lazy import LazyGroup
from codex_multi_role.cli.options import CYCLES, JSON, REPAIR_ATTEMPTS, ROLES, command
from codex_multi_role.cli.roles import open_catalog
from codex_multi_role.cli.streams import put_json
from codex_multi_role.cli.tables import put_table
from codex_multi_role.cli.text import duration, plural
from codex_multi_role.errors import UsageError

if TYPE_CHECKING:
    from codex_multi_role.catalog import RoleSpecCatalog

HEADINGS = ("flow", "file", "description")

flows = LazyGroup(
    name="flows",
    targets={name: f"{__name__}:{name}_flows" for name in ("list", "show", "validate")},
    short_help="List, show or check flows, with their worst case.",
    help="List, show or check flows: those of the roles folder, and the shipped ones.",
    no_args_is_help=True,
)


@command(ROLES, JSON, name="list", short_help="List the flows.")
def list_flows(roles: Path | None, json: bool) -> None:
    """List the flows of the roles folder and the shipped ones it does not replace."""
    from codex_multi_role.catalog import list_flows as find_flows  # here: `--help` should not load the catalog

    entries = find_flows(open_catalog(roles).source.parent)
    if json:
        put_json([vars(entry) for entry in entries])
    else:
        put_table(HEADINGS, [(entry.name, entry.source, entry.problem or entry.description) for entry in entries])


@command(ROLES, JSON, name="show", short_help="Show a flow.")
@click.argument("name", metavar="FLOW")
def show_flows(name: str, roles: Path | None, json: bool) -> None:
    """Show the file of FLOW, or with --json what was read from it, defaults included."""
    from codex_multi_role.catalog import load_flow, read_text  # as above

    catalog = open_catalog(roles)
    flow = load_flow(name, catalog.source.parent, catalog)
    if json:
        put_json(flow.model_dump(mode="json", by_alias=True))
    else:
        click.echo(f"# {flow.source}\n{read_text(flow.source).rstrip()}")


@command(ROLES, CYCLES, REPAIR_ATTEMPTS, name="validate", short_help="Check flows; show their worst case.")
@click.argument("names", metavar="[FLOW]...", nargs=-1)
@click.pass_context
def validate_flows(
    ctx: click.Context, /, names: tuple[str, ...], roles: Path | None, cycles: int, repair_attempts: int
) -> None:
    """Check each FLOW, or all of them, against the catalog, and show the most that a run of it can take."""
    from codex_multi_role.catalog import list_flows as find_flows  # as above

    catalog = open_catalog(roles)
    worst_code = 0
    for name in names or [entry.name for entry in find_flows(catalog.source.parent)]:
        try:
            click.echo(f"ok: {name}: {_worst_case(name, catalog, cycles, repair_attempts)}")
        except UsageError as error:
            worst_code = complain(str(error), error.hint, error.exit_code)
    ctx.exit(worst_code)


def _worst_case(name: str, catalog: RoleSpecCatalog, cycles: int, repair_attempts: int) -> str:
    from codex_multi_role.catalog import load_flow  # as above
    from codex_multi_role.flow import worst_case

    flow = load_flow(name, catalog.source.parent, catalog)
    most = worst_case(flow, catalog, cycles=cycles, repair_attempts=repair_attempts)
    return (
        f"at most {plural(most.turns, 'turn')} and {plural(most.repair_turns, 'repair turn')} "
        f"of {plural(most.processes, 'process')} in {duration(most.seconds)}, "
        f"with {plural(cycles, 'cycle')} and {plural(repair_attempts, 'repair attempt')}"
    )
