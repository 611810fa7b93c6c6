"""``run``: run a flow for a goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from codex_multi_role.cli.asking import person_at
from codex_multi_role.cli.dry_run_text import put_dry_run
from codex_multi_role.cli.goal import choose_goal
from codex_multi_role.cli.options import OF_THIS_PROCESS, RUN, command
from codex_multi_role.cli.output import say
from codex_multi_role.cli.reports import report_end, reported
from codex_multi_role.cli.summary import no_page, summary
from codex_multi_role.cli.views import open_view
from codex_multi_role.errors import UsageError
from codex_multi_role.presentation.progress import Progress
from codex_multi_role.run_options import RunOptions, RunReport

if TYPE_CHECKING:
    from codex_multi_role.playbook import Playbook

NOT_OF_THE_RUN = {"goal_file", "input", "dry_run", *(each.key for each in OF_THIS_PROCESS)}
"""Settings of the command line that are not options of the run."""


@command(*RUN, short_help="Run a flow for a goal (what happens without a command).")
@click.pass_context
@reported
def run(ctx: click.Context, /, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Run a flow for a goal. Everything the run does is recorded in a folder of its own below --runs-dir.

    \b
    Examples:
      codex-multi-role --goal "Add a --version flag" --cycles 3
      codex-multi-role run --goal-file goal.md --workspace ../shop -c model_provider=local
      codex-multi-role run --playbook roman-numerals --json > events.ndjson
      codex-multi-role run --goal-file goal.md --junit junit.xml --summary summary.md
      codex-multi-role run --goal "Add a --version flag" --dry-run
      codex-multi-role run --goal "Add a --version flag" --record version.ndjson
      codex-multi-role run --replay version.ndjson
    """
    options = run_options(ctx)
    if values["dry_run"]:
        from codex_multi_role.lifecycle.dry_run import dry_run  # here: `--help` should not load the catalog

        put_dry_run(dry_run(options), as_json=values["json"], quiet=values["quiet"])
        return
    progress = Progress()
    from codex_multi_role import api

    with open_view(progress, as_json=values["json"], quiet=values["quiet"], plain=values["plain"]) as view:
        ask_person = person_at(view, as_json=values["json"], awaited=values["await_answers"])
        report = api.run(options, on_event=view, ask_person=ask_person)
    close(ctx, report, progress)


def close(ctx: click.Context, report: RunReport, progress: Progress) -> None:
    """Report how the run ended, to people and to a CI system, and exit with its code."""
    say_end(ctx, report, progress)
    report_end(ctx, report, progress)
    ctx.exit(report.exit_code)


def say_end(ctx: click.Context, report: RunReport, progress: Progress) -> None:
    """Print the closing summary; ``ctx`` has the settings ``runs_dir``, ``json`` and ``quiet``."""
    if not ctx.params["json"] and not (ctx.params["quiet"] and report.exit_code == 0):
        lines = list(summary(report, progress, ctx.params["runs_dir"]))
        for line in (lines[0], lines[-1]) if ctx.params["quiet"] else ["", *lines]:
            say(line)
    if report.page_problem and ctx.params["json"]:
        say(f"report {no_page(report, ctx.params['runs_dir'])}")


def run_options(ctx: click.Context) -> RunOptions:
    """Build the options from the settings and the playbook they name. Raises `UsageError`, `DefinitionError`."""
    values = {key: value for key, value in ctx.params.items() if key not in NOT_OF_THE_RUN}
    suggested = _suggested(values)
    values["goal"] = choose_goal(ctx, suggested.pop("goal", None) or "")
    inputs = parse_inputs(ctx.params["input"])
    if ctx.get_parameter_source("flow") is ParameterSource.DEFAULT:
        inputs = {**suggested.pop("inputs", {}), **inputs}
    for name, value in suggested.items():
        if name in values and ctx.get_parameter_source(name) is ParameterSource.DEFAULT:
            values[name] = value
    return RunOptions(**values, inputs=inputs)


def _suggested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the playbook or the recording suggests for settings that are not given."""
    if values["replay"] is not None:
        from codex_multi_role.lifecycle.recordings.run_outcome import suggested_options
        from codex_multi_role.playbook.recording import Recording

        return suggested_options(Recording.load(values["replay"]), values["workspace"])
    playbook = _playbook(values["playbook"], values["roles"])
    suggested = {"goal": playbook and playbook.goal, "cycles": playbook and playbook.cycles}
    return {name: value for name, value in suggested.items() if value}


def _playbook(name: str | None, roles: Path | None) -> Playbook | None:
    if name is None:
        return None
    from codex_multi_role.lifecycle.definitions import roles_folder
    from codex_multi_role.playbook import load_playbook

    return load_playbook(name, roles_folder(roles))


def parse_inputs(assignments: Sequence[str]) -> dict[str, str]:
    """Parse ``key=value`` texts. Raises `UsageError` for a repeated key."""
    inputs: dict[str, str] = {}
    for assignment in assignments:
        key, _, value = assignment.partition("=")
        if key.strip() in inputs:
            raise UsageError(f"--input {key.strip()} is given twice")
        inputs[key.strip()] = value
    return inputs
