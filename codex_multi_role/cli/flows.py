"""``flows list|show|graph|validate|new``: the flows of a catalog, and the shipped ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from codex_multi_role.catalog import list_flows as find_flows
from codex_multi_role.catalog import read_text
from codex_multi_role.cli.boundary import complain_about
from codex_multi_role.cli.completion import flow_names
from codex_multi_role.cli.flow_explanation import (
    answer_rows,
    ends_in_short,
    explanation,
    inputs_in_short,
    worst_case_words,
)
from codex_multi_role.cli.lazy_group import LazyCommand, LazyGroup
from codex_multi_role.cli.options import BOUNDING, JSON, ROLES, RUNS_DIR, command
from codex_multi_role.cli.output import put_json, put_line, put_table, put_text, say
from codex_multi_role.cli.roles import WATCH, repeatedly
from codex_multi_role.cli.run import parse_inputs
from codex_multi_role.cli.setting import flag
from codex_multi_role.cli.tables import Column
from codex_multi_role.errors import INSTALL, DefinitionError, UsageError
from codex_multi_role.flow import graph
from codex_multi_role.flow.notes import notes_on
from codex_multi_role.flow.references import unsent_roles, unused_roles
from codex_multi_role.flow.routing import ends
from codex_multi_role.lifecycle.definitions import judge
from codex_multi_role.lifecycle.team_loading import (
    check_playbooks,
    known_checks,
    load_catalog,
    load_checked_team,
    load_flow_and_called,
    own_flows,
    require_finish,
    roles_folder,
)
from codex_multi_role.presentation.recorded import Records
from codex_multi_role.presentation.wording import duration, plural
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder.cost import Cost, dollars
from codex_multi_role.run_folder.folder import has_reached_end
from codex_multi_role.run_options import RunOptions

if TYPE_CHECKING:
    from codex_multi_role.catalog import FlowEntry, RoleSpecCatalog


COLUMNS = (
    *("flow", Column("inputs", text=16), Column("ends", text=16)),
    *(Column("description", text=36), Column("file", path=20)),
)
ASCII = flag("--ascii", "Draw plain text, 80 columns wide, instead of Mermaid.")
OUTLINE = flag(
    "--outline", "Only the steps and ends of the flow, in Mermaid: no conditions, no details and no called flows."
)
ALL = flag("--all", "Include internal flows, which only other flows call.")

flows = LazyGroup(
    name="flows",
    targets={
        "list": LazyCommand(f"{__name__}:list_flows", "List the flows."),
        "show": LazyCommand(f"{__name__}:show_flows", "Explain and show a flow."),
        "graph": LazyCommand(f"{__name__}:graph_flows", "Draw a flow."),
        "validate": LazyCommand(f"{__name__}:validate_flows", "Check flows and show their worst case."),
    },
    installed=Registry("command below flows", "codex_multi_role.flows_commands", {}),
    help="List, show, draw, check and add flows: yours and the shipped ones.",
    no_args_is_help=True,
)


@command(ROLES, ALL, JSON, name="list")
def list_flows(roles: Path | None, all: bool, json: bool) -> None:
    """List your flows and the shipped ones, each with its inputs and ends.

    Inputs in brackets are optional. The number after an end is its exit code. Your flow replaces a shipped flow of the
    same name. Internal flows, which only other flows call, are listed with --all.

    \b
    Examples:
      codex-multi-role flows list
    """
    entries = [each for each in find_flows(load_catalog(roles).source.parent) if all or not each.is_internal]
    if json:
        put_json([_record(entry) for entry in entries])
    else:
        put_table(COLUMNS, [_row(entry) for entry in entries])


def _record(entry: FlowEntry) -> dict[str, object]:
    flow = entry.flow
    return {
        "name": entry.name,
        "source": entry.source,
        "description": entry.description,
        "problem": entry.problem,
        "internal": entry.is_internal,
        "inputs": flow.model_dump(mode="json")["inputs"] if flow else {},
        "ends": [{"outcome": end.outcome, "exit_code": end.exit_code} for end in ends(flow)] if flow else [],
    }


def _row(entry: FlowEntry) -> tuple[object, ...]:
    flow = entry.flow
    in_short = (inputs_in_short(flow), ends_in_short(flow)) if flow else ("", "")
    return (entry.name, *in_short, entry.problem or entry.description, entry.source)


@command(ROLES, RUNS_DIR, *BOUNDING, JSON, name="show")
@click.argument("name", metavar="FLOW", shell_complete=flow_names)
def show_flows(
    name: str,
    roles: Path | None,
    runs_dir: Path,
    json: bool,
    **bounding: Any,  # noqa: ANN401 - the settings above
) -> None:
    """Explain FLOW (its inputs, steps, ends and worst case), then show its file.

    The explanation is written as YAML comments, so the output is still a valid flow. --json prints the parsed flow.

    \b
    Examples:
      codex-multi-role flows show testgen
    """
    catalog = load_catalog(roles)
    flows, catalog = team = load_flow_and_called(name, catalog)
    if json:
        put_json(flows[name].model_dump(mode="json", by_alias=True))
        return
    try:
        most = worst_case_words(flows, name, catalog, _options(**bounding))
    except DefinitionError as error:
        most = f"none: {error}"
    known = typical_runs(runs_dir).get(name)
    explained = explanation(team, name, most, known.in_words if known else "")
    put_text(f"{explained}\n\n{read_text(flows[name].source).rstrip()}", exact=True)


def _options(input: Sequence[str], **bounding: Any) -> RunOptions:  # noqa: ANN401 - the settings above
    return RunOptions(**bounding, inputs=parse_inputs(input))


@command(ROLES, ASCII, OUTLINE, name="graph")
@click.argument("name", metavar="[FLOW]", default=RunOptions.flow, shell_complete=flow_names)
@WATCH
def graph_flows(name: str, roles: Path | None, ascii: bool, outline: bool, watch: bool) -> None:
    """Draw FLOW (default: cycles) and the flows it calls as a Mermaid flowchart, or as plain text.

    \b
    Examples:
      codex-multi-role flows graph testgen
      codex-multi-role flows graph mine --ascii --watch
    """
    if ascii and outline:
        raise UsageError("--ascii and --outline exclude each other", "Use one of them.")

    def draw() -> None:
        flows, _ = load_flow_and_called(name, load_catalog(roles))
        whole = graph.ascii if ascii else graph.mermaid
        put_text(graph.outline(flows[name]) if outline else whole(flows, name))

    repeatedly(roles_folder(roles), draw, watch=watch)


@command(ROLES, RUNS_DIR, ALL, *BOUNDING, name="validate")
@click.argument("names", metavar="[FLOW]...", nargs=-1, shell_complete=flow_names)
@click.pass_context
def validate_flows(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    roles: Path | None,
    runs_dir: Path,
    all: bool,
    **bounding: Any,  # noqa: ANN401 - the settings above
) -> None:
    """Check each FLOW, by default all, against the catalog, and show the worst case of a run.

    The time is the sum of all deadlines: of turns, tests, checks, and reviews with a time limit. The limits of a run
    reduce the worst case, and inputs may be its only bound (--input). Each resume after a failure repeats what failed.
    What earlier runs took with a model is shown beside it.

    For your own flows that you name, roles that the flow never asks are reported, but are not an error: a catalog may
    serve several flows. Internal flows, which only other flows call, are checked too; --all shows their worst cases.

    \b
    Examples:
      codex-multi-role flows validate
      codex-multi-role flows validate cycles --cycles 5 --max-turns 40
    """
    try:
        catalog = load_catalog(roles)
    except DefinitionError:
        catalog = load_checked_team(roles)  # raises with the mistakes in flows and playbooks as well
    folder, typical, options = catalog.source.parent, typical_runs(runs_dir), _options(**bounding)
    own = own_flows(folder)
    warned: set[str] = set()

    def check(name: str) -> None:
        is_named, is_own = name in names, name in own
        try:
            _validate(name, catalog, options, typical.get(name), warned, is_named=is_named, is_own=is_own, all=all)
        except DefinitionError as error:
            first, *_ = error.problems
            if is_named or is_own or {each.hint.startswith(INSTALL) for each in error.problems} != {True}:
                raise
            if first.hint not in warned:
                warned.add(first.hint)
                say(f"note: {name} cannot run here: {first.problem or first}. {first.hint}")

    checks = [partial(check, name) for name in names or [entry.name for entry in find_flows(folder)]]
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


def _validate(
    name: str,
    catalog: RoleSpecCatalog,
    options: RunOptions,
    typical: TypicalRun | None,
    warned: set[str],
    *,
    is_named: bool,
    is_own: bool,
    all: bool,
) -> None:
    """Check one flow like a run, and print its worst case; of an internal flow only if it is named or with ``all``.

    ``warned``: the warnings printed so far, for flows that others call. A flow that cannot reach its goal with this
    team may run all the same. Raises `UsageError`.
    """
    flows, catalog = team = load_flow_and_called(name, catalog)
    known = {key: value for key, value in options.inputs.items() if is_named or key in flows[name].inputs}
    options = options.changed(flow=name, inputs=known)
    judge(flows, options, catalog, flows[name].known_inputs(known))
    most = worst_case_words(flows, name, catalog, options)
    try:
        require_finish(flows[name], catalog)
    except DefinitionError as error:
        say(f"{'warning' if is_named or is_own else 'note'}: {error}")
    if is_named or all or not flows[name].internal:
        put_line(f"ok: {name}: {most}" + (f"; {typical.in_words}" if typical else ""))
    if is_named:
        for step, needed in answer_rows(team, name):
            put_line(f"    {step} must answer {needed}")
    for warning in unsent_roles(flows, catalog).values():
        if warning not in warned:
            warned.add(warning)
            say(f"warning: {warning}")
    for note in notes_on(flows[name], catalog, known_checks(flows)) if is_own else ():
        say(f"note: {note}")
    if is_named and is_own and (unused := unused_roles(flows, catalog)):
        say(f"note: {name} never asks {', '.join(unused)}")


@dataclass(frozen=True)
class TypicalRun:
    """``turns`` and ``seconds``: the medians of that many ``runs``; ``cost``: that of the ``priced_runs``, if any."""

    runs: int
    turns: float
    seconds: float
    cost: float | None = None
    priced_runs: int = 0

    @property
    def in_words(self) -> str:
        """``typically 8 turns in 3 min 20 s, the median of 12 runs``."""
        known = f"the median of {self.runs} runs" if self.runs > 1 else "as in the only run so far"
        cost = "" if self.cost is None else f" for {dollars(self.cost)}"
        if 0 < self.priced_runs < self.runs:
            cost += f" (known for {plural(self.priced_runs, 'run')})"
        return f"typically {plural(self.turns, 'turn')} in {duration(self.seconds)}{cost}, {known}"


def typical_runs(runs_dir: Path) -> dict[str, TypicalRun]:
    """By flow, from the runs below ``runs_dir`` whose flow ended and that asked a model for all of their turns."""
    totals: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for run in Records(runs_dir).look():
        if has_reached_end(run.record) and _paid_for_all(run.record):
            totals[str(run.record.get("flow"))].append(run.record.get("totals") or {})
    return {flow: _typical(each) for flow, each in totals.items()}


def _paid_for_all(record: Mapping[str, Any]) -> bool:
    """Whether no turn was played or replayed, inherited by a fork, or possibly taken over from an earlier run."""
    return not any(record.get(name) for name in ("playbook", "recording", "forked_from"))


def _typical(totals: list[Mapping[str, Any]]) -> TypicalRun:
    turns, seconds = (median(float(each.get(name) or 0) for each in totals) for name in ("turns", "seconds"))
    costs = [float(cost) for each in totals if (cost := Cost.of_totals(each).known) is not None]
    return TypicalRun(len(totals), turns, seconds, median(costs) if costs else None, len(costs))
