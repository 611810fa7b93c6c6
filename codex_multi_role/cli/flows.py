"""``flows list|show|graph|validate|new``: the flows of a catalog, and the shipped ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codex_multi_role.cli.boundary import complain_about
from codex_multi_role.cli.completion import flow_names
from codex_multi_role.cli.lazy_group import LazyGroup
from codex_multi_role.cli.options import BOUNDING, DEFAULTS, JSON, ROLES, command
from codex_multi_role.cli.output import put_json, put_table, say
from codex_multi_role.cli.settings import Setting
from codex_multi_role.cli.team import WATCH, open_catalog, option_for, repeatedly
from codex_multi_role.errors import DefinitionError, UsageError

if TYPE_CHECKING:
    from codex_multi_role.catalog import FlowEntry, RoleSpecCatalog

HEADINGS = ("flow", "inputs", "ends", "description", "file")
ASCII = Setting(["--ascii"], is_flag=True, help="Plain text of 80 columns instead of Mermaid.")
OUTLINE = Setting(
    ["--outline"],
    is_flag=True,
    help="The flow alone, in Mermaid: its steps and ends, without conditions, details and the flows it calls.",
)

flows = LazyGroup(
    name="flows",
    targets={name: f"{__name__}:{name}_flows" for name in ("list", "show", "graph", "validate", "new")},
    short_help="List, show, draw, check or add flows, with their worst case.",
    help="List, show, draw, check or add flows: those of the roles folder, and the shipped ones.",
    no_args_is_help=True,
)


@command(ROLES, JSON, name="list", short_help="List the flows.")
def list_flows(roles: Path | None, json: bool) -> None:
    """List the flows of the roles folder and the shipped ones it does not replace, with their inputs and ends.

    An input in brackets may be left out; after an end stands its exit code.

    \b
    Examples:
      codex-multi-role flows list
    """
    from codex_multi_role.catalog import list_flows as find_flows  # here: `--help` should not load the catalog

    entries = find_flows(open_catalog(roles).source.parent)
    if json:
        put_json([_record(entry) for entry in entries])
    else:
        put_table(HEADINGS, [_row(entry) for entry in entries])


def _record(entry: FlowEntry) -> dict[str, object]:
    from codex_multi_role.flow.ends import ends  # as above

    flow = entry.flow
    return {
        "name": entry.name,
        "source": entry.source,
        "description": entry.description,
        "problem": entry.problem,
        "inputs": flow.model_dump(mode="json")["inputs"] if flow else {},
        "ends": [{"outcome": end.outcome, "exit_code": end.exit_code} for end in ends(flow)] if flow else [],
    }


def _row(entry: FlowEntry) -> tuple[object, ...]:
    from codex_multi_role.cli.flow_explanation import ends_in_short, inputs_in_short  # as above

    flow = entry.flow
    in_short = (inputs_in_short(flow), ends_in_short(flow)) if flow else ("", "")
    return (entry.name, *in_short, entry.problem or entry.description, entry.source)


@command(ROLES, *BOUNDING, JSON, name="show", short_help="Explain and show a flow.")
@click.argument("name", metavar="FLOW", shell_complete=flow_names)
def show_flows(name: str, roles: Path | None, json: bool, **bounding: Any) -> None:  # noqa: ANN401 - the settings above
    """Explain FLOW (its inputs, steps, ends and worst case) and show its file; with --json what was read from it.

    The explanation is in comments: what is printed is the flow's YAML still.

    \b
    Examples:
      codex-multi-role flows show testgen
    """
    from codex_multi_role.catalog import read_text
    from codex_multi_role.cli.flow_explanation import explanation, worst_case_words
    from codex_multi_role.lifecycle.definitions import load_flow_and_called  # as above

    catalog = open_catalog(roles)
    flows, catalog = load_flow_and_called(name, catalog)
    if json:
        put_json(flows[name].model_dump(mode="json", by_alias=True))
        return
    try:
        most = worst_case_words(flows, name, catalog, **bounding)
    except DefinitionError as error:
        most = f"none: {error}"
    click.echo(f"{explanation(flows, name, catalog, most)}\n\n{read_text(flows[name].source).rstrip()}")


@command(ROLES, ASCII, OUTLINE, name="graph", short_help="Draw a flow.")
@click.argument("name", metavar="[FLOW]", default=DEFAULTS["flow"], shell_complete=flow_names)
@WATCH
def graph_flows(name: str, roles: Path | None, ascii: bool, outline: bool, watch: bool) -> None:
    """Draw FLOW (by default cycles) and those that it calls, as a Mermaid flowchart or as plain text.

    \b
    Examples:
      codex-multi-role flows graph testgen
      codex-multi-role flows graph mine --ascii --watch
    """
    from codex_multi_role.flow import graph
    from codex_multi_role.lifecycle.definitions import load_flow_and_called, roles_folder  # as above

    if ascii and outline:
        raise UsageError("--ascii and --outline are both given", "Take one of them.")

    def draw() -> None:
        flows, _ = load_flow_and_called(name, open_catalog(roles))
        whole = graph.ascii if ascii else graph.mermaid
        click.echo(graph.outline(flows[name]) if outline else whole(flows, name), nl=False)

    repeatedly(roles_folder(roles), draw, watch=watch)


@command(ROLES, *BOUNDING, name="validate", short_help="Check flows; show their worst case.")
@click.argument("names", metavar="[FLOW]...", nargs=-1, shell_complete=flow_names)
@click.pass_context
def validate_flows(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    roles: Path | None,
    **bounding: Any,  # noqa: ANN401 - the settings above
) -> None:
    """Check each FLOW, or all of them, against the catalog, and show the most that a run of it can take.

    The time is that of all deadlines passing: those of turns, tests, checks and of reviews that have a limit. The
    limits of a run make the worst case smaller; each resume after a failure takes what failed once more.
    Roles that a flow never asks are listed, but are not an error: a catalog may serve several flows.

    \b
    Examples:
      codex-multi-role flows validate
      codex-multi-role flows validate cycles --cycles 5 --max-turns 40
    """
    from codex_multi_role.catalog import list_flows as find_flows  # as above
    from codex_multi_role.lifecycle.team_check import check_playbooks, load_checked_team, own_flows

    try:
        catalog = open_catalog(roles)
    except DefinitionError:
        catalog = load_checked_team(roles)  # raises with the mistakes in flows and playbooks as well
    folder = catalog.source.parent
    chosen = names or own_flows(folder)
    checks = [
        partial(_validate, name, catalog, bounding, name in chosen)
        for name in names or [entry.name for entry in find_flows(folder)]
    ]
    ctx.exit(_worst_code([*checks, *([] if names else [partial(check_playbooks, folder)])]))


def _worst_code(checks: Iterable[Callable[[], None]]) -> int:
    """Carry out all checks; returns the highest exit code. A mistake in a flow that others call is printed once."""
    worst, printed = 0, set[str]()
    for check in checks:
        try:
            check()
        except UsageError as error:
            worst = max(worst, error.exit_code)
            for each in error.problems if isinstance(error, DefinitionError) else (error,):
                if str(each) not in printed:
                    printed.add(str(each))
                    complain_about(each)
    return worst


def _validate(name: str, catalog: RoleSpecCatalog, bounding: dict[str, Any], is_chosen: bool) -> None:
    """``is_chosen``: a flow that is named, or the team's own; a shipped one need not fit the team."""
    from codex_multi_role.catalog.flow_references import unused_roles
    from codex_multi_role.cli.flow_explanation import worst_case_words
    from codex_multi_role.lifecycle.definitions import load_flow_and_called  # as above
    from codex_multi_role.lifecycle.team_check import require_finish

    flows, catalog = load_flow_and_called(name, catalog)
    most = worst_case_words(flows, name, catalog, **bounding)
    try:
        require_finish(flows[name], catalog)
    except DefinitionError as error:
        if is_chosen:
            raise
        say(f"note: {error}")
    click.echo(f"ok: {name}: {most}")
    if unused := unused_roles(flows, catalog):
        say(f"note: {name} never asks {', '.join(unused)}")


@command(ROLES, name="new", short_help="Add a flow to your roles folder.")
@click.argument("name", metavar="NAME")
def new_flows(name: str, roles: Path | None) -> None:
    """Write a small commented flow to flows/NAME.yaml beside your catalog: a role works until the tests pass."""
    from codex_multi_role.cli.new_definitions import add_flow

    path = add_flow(name, roles)
    say(f"wrote {path}")
    where = option_for(roles or path.parent.parent)
    tried = f'codex-multi-role --goal "Try it out" --flow {name}{where} --dry-run'
    say(f"next: edit it, then `codex-multi-role flows validate {name}{where}` and `{tried}`")
