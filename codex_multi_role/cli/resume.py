"""``resume``: continue a run that was interrupted, failed, or used up its cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from codex_multi_role.cli.asking import person_at
from codex_multi_role.cli.options import CHANGEABLE, OF_THIS_PROCESS, RUNS_DIR, WAIT, command, run_argument
from codex_multi_role.cli.output import say
from codex_multi_role.cli.reports import reported
from codex_multi_role.cli.run import close, parse_inputs
from codex_multi_role.cli.settings import Setting
from codex_multi_role.cli.views import open_view
from codex_multi_role.cli.waiting import wait_for_quota
from codex_multi_role.presentation.progress import Progress
from codex_multi_role.run_folder import RunFolder, read_events

GIVEN_NOW = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


@command(
    RUNS_DIR, *CHANGEABLE, WAIT, *OF_THIS_PROCESS, short_help="Go on with a run; no finished turn is paid for again."
)
@run_argument
@click.pass_context
@reported
def resume(ctx: click.Context, /, run: str, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Go on with RUN (an id, a unique prefix of one, or `latest`) where it stopped.

    A run remembers its options. Those given here, as flags or in the environment, change it from now on, and -i and
    -c add to what it has; codex-multi-role.yaml changes nothing.

    \b
    Examples:
      codex-multi-role resume latest
      codex-multi-role resume 20260131_101500 --cycles 6 --model gpt-5-codex
      codex-multi-role resume latest --wait
    """
    folder = RunFolder.find(values["runs_dir"], run)
    record = folder.record()
    changes = changes_of(ctx, record["options"])
    say_changes(ctx, changes)
    if values["wait"]:
        wait_for_quota(record, quiet=values["quiet"] or values["json"])
    go_on(ctx, folder, changes)


def go_on(ctx: click.Context, folder: RunFolder, changes: Mapping[str, Any]) -> None:
    """Resume the run and exit with its code; ``ctx`` has the settings ``runs_dir`` and `OF_THIS_PROCESS`."""
    as_json, quiet, plain = (ctx.params[name] for name in ("json", "quiet", "plain"))
    progress = Progress.of(read_events(folder.events_path))
    from codex_multi_role import api

    with open_view(progress, as_json=as_json, quiet=quiet, plain=plain) as view:
        report = api.resume(
            folder.run_id,
            runs_dir=folder.path.parent,
            changes=changes,
            on_event=view,
            ask_person=person_at(view, as_json=as_json, awaited=ctx.params["await_answers"]),
        )
    close(ctx, report, progress)


def say_changes(ctx: click.Context, changes: Mapping[str, Any]) -> None:
    """Print which options of the run change."""
    if changes and not (ctx.params["json"] or ctx.params["quiet"]):
        say(f"changed: {', '.join(f'{name}={value}' for name, value in changes.items())}")


def changes_of(
    ctx: click.Context, remembered: Mapping[str, Any], settings: Sequence[Setting] = CHANGEABLE
) -> dict[str, Any]:
    """Return the `RunOptions` fields given now; repeatable ones are added to ``remembered``, the run's."""
    keys = [setting.key for setting in settings]
    changes = {key: ctx.params[key] for key in keys if ctx.get_parameter_source(key) in GIVEN_NOW}
    if "input" in changes:
        changes["inputs"] = {**remembered["inputs"], **parse_inputs(changes.pop("input"))}
    if "config" in changes:
        given = changes["config"]
        changes["config"] = (*(each for each in remembered["config"] if each not in given), *given)
    return changes
