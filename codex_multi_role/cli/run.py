"""``run``: run a flow for a goal, or show what it would ask."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from codex_multi_role.cli.foreground import in_foreground, report_and_exit
from codex_multi_role.cli.options import RUN, SETTINGS, command
from codex_multi_role.cli.output import put_json_line, put_text, say
from codex_multi_role.cli.setting import not_empty
from codex_multi_role.cli.settings import added_names
from codex_multi_role.errors import UsageError
from codex_multi_role.host.importing import without_plugin_search
from codex_multi_role.option import Use
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.wording import plural
from codex_multi_role.reading.shipped import FLOWS, find_definition
from codex_multi_role.run_options import RunOptions

OF_THE_RUN = {each.key for each in SETTINGS.values()} - {"input"}
"""Settings of the command line that are options of the run."""
WAYS_TO_GIVE_A_GOAL = {"goal_text": "GOAL", "goal": "--goal", "goal_file": "--goal-file"}
PRECEDENCE = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)
STANDARD_INPUT = Path("-")


@command(*RUN, works=True, use=Use(0))
@click.argument("goal_text", metavar="[GOAL]", required=False, callback=not_empty)
@click.pass_context
def run(ctx: click.Context, /, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Run a flow for GOAL. Everything the run does is recorded in its own folder in --runs-dir.

    \b
    Examples:
      codex-multi-role "Add a --version flag" --cycles 3
      codex-multi-role "Add a --version flag" --branch version-flag
      codex-multi-role run --goal-file goal.md --workspace ../shop
      codex-multi-role run --playbook roman-numerals --json > events.ndjson
      codex-multi-role "Add a --version flag" --dry-run
    """
    options = run_options(ctx)
    if values["dry_run"]:
        from codex_multi_role.lifecycle.dry_run import dry_run  # here: `--help` should not load the catalog

        put_dry_run(dry_run(options), as_json=values["json"], quiet=values["quiet"])
        return
    with without_plugin_search():
        import codex_multi_role.lifecycle.running as running

    course = Course()
    with in_foreground(ctx, course) as callbacks:
        report = running.run(options, **callbacks)
    report_and_exit(ctx, report, course)


def run_options(ctx: click.Context) -> RunOptions:
    """Build the options from the settings and the playbook they name. Raises `UsageError`, `DefinitionError`."""
    _refuse_flow_as_goal(ctx)
    added = {name: ctx.params[name] for name in added_names(ctx)}
    values = {key: value for key, value in ctx.params.items() if key in OF_THE_RUN} | added
    suggested = _suggested(values, {name: value for name, value in added.items() if value})
    values["goal"] = choose_goal(ctx, suggested.pop("goal", None) or "")
    inputs = parse_inputs(ctx.params["input"])
    if ctx.get_parameter_source("flow") is ParameterSource.DEFAULT:
        inputs = {**suggested.pop("inputs", {}), **inputs}
    for name, value in suggested.items():
        if name in values and ctx.get_parameter_source(name) is ParameterSource.DEFAULT:
            values[name] = value
    return RunOptions(**values, inputs=inputs)


def _refuse_flow_as_goal(ctx: click.Context) -> None:
    """Raise `UsageError` if the argument GOAL is the name of a flow: a paid run of another flow would start."""
    goal = ctx.params["goal_text"]
    if not goal or " " in goal:
        return
    from codex_multi_role.lifecycle.team_loading import roles_folder  # here: only a goal of one word needs the catalog

    if find_definition(FLOWS, goal, roles_folder(ctx.params["roles"])):
        hint = f"Run the flow with --flow {goal}; a goal of this word is --goal {goal}."
        raise UsageError(f'"{goal}" is the name of a flow, not a goal', hint)


def _suggested(values: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the playbook, or an ``added`` option, suggests for settings that are not given."""
    if added:
        from codex_multi_role.lifecycle.model_providers import sources_of  # here: slow to import

        for name, source in sources_of(added).items():
            if suggested := source.suggest(added[name], values["workspace"]):
                return suggested
    if values["playbook"] is None:
        return {}
    from codex_multi_role.lifecycle.team_loading import roles_folder
    from codex_multi_role.playbook import is_automatic, load_playbook

    folder = roles_folder(values["roles"])
    if is_automatic(values["playbook"], folder):
        return {}
    playbook = load_playbook(values["playbook"], folder)
    suggested = {"goal": playbook.goal, "cycles": playbook.cycles}
    return {name: value for name, value in suggested.items() if value}


def parse_inputs(assignments: Sequence[str]) -> dict[str, str]:
    """Parse ``key=value`` texts. Raises `UsageError` for a repeated key."""
    inputs: dict[str, str] = {}
    for assignment in assignments:
        key, _, value = assignment.partition("=")
        if key.strip() in inputs:
            raise UsageError(f"--input {key.strip()} is given twice")
        inputs[key.strip()] = value
    return inputs


def choose_goal(ctx: click.Context, suggestion: str = "") -> str:
    """Return the goal from the source with the highest precedence, or the suggestion. Raises `UsageError` for two."""
    for source in PRECEDENCE:
        given = [name for name in WAYS_TO_GIVE_A_GOAL if ctx.get_parameter_source(name) is source]
        if len(given) > 1:
            raise UsageError(f"the goal is given twice: {' and '.join(WAYS_TO_GIVE_A_GOAL[name] for name in given)}")
        if given:
            value = ctx.params[given[0]]
            return _read_goal(value) if given == ["goal_file"] else str(value)
    return suggestion


def _read_goal(path: Path) -> str:
    """Read a goal from ``path`` (``-``: standard input), stripped. Raises `UsageError`."""
    try:
        content = sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
        goal = content.decode("utf-8-sig").strip()
    except OSError as error:
        raise UsageError(f"--goal-file: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--goal-file: {path}: not UTF-8 text (byte {error.start})") from error
    if not goal:
        raise UsageError(f"--goal-file: {path} is empty")
    return goal


def put_dry_run(records: Sequence[Mapping[str, Any]], *, as_json: bool, quiet: bool) -> None:
    """Print the records of `dry_run.dry_run`; with ``quiet``, people see errors only, and so nothing."""
    if as_json:
        for record in records:
            put_json_line(record)
    elif not quiet:
        steps = [record for record in records if record["type"] != "warning"]
        for record in records[: len(records) - len(steps)]:
            say(f"warning: {record['message']}")
        for number, record in enumerate(steps, 1):
            put_text("\n".join([*_dry_run_lines(number, record), ""]))
        prompts = sum(record["type"] == "ask" for record in records)
        say(f"{plural(prompts, 'prompt')} in the first pass; nothing was started, written or spent")


def _dry_run_lines(number: int, record: Mapping[str, Any]) -> Iterator[str]:
    kind = record["type"]
    named = {"ask": "role", "check": "check", "call": "flow"}.get(kind)
    what = f"{kind} {record[named]}" if named else kind
    which = f", item {record['item']}" if record["item"] else ""
    yield f"=== {number}. {record['step']}: {what}{which} ==="
    match kind:
        case "ask":
            yield record["prompt"]
        case "review":
            yield from (f"{_as_text(record[key])}\n" for key in ("question", "show") if record[key])
        case _:
            yield f"{_as_text(record['with'])}\n" if record["with"] else ""


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
