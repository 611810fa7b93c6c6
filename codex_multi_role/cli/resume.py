"""``resume`` and ``fork``: continue a recorded run, or start a new one with its past."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from codex_multi_role.cli.foreground import in_foreground, report_and_exit
from codex_multi_role.cli.options import (
    CHANGEABLE,
    FORKABLE,
    OF_THIS_PROCESS,
    RUNS_DIR,
    START,
    TASK,
    WAIT,
    command,
    run_argument,
)
from codex_multi_role.cli.output import say
from codex_multi_role.cli.run import choose_goal, parse_inputs
from codex_multi_role.cli.run_additions import PLACES, RemoteRun, find_either
from codex_multi_role.cli.setting import Setting
from codex_multi_role.cli.settings import added_names
from codex_multi_role.cli.watch import view_run
from codex_multi_role.errors import QuotaUsedUp, UsageError
from codex_multi_role.option import Use
from codex_multi_role.presentation.course import Course, inherited_by
from codex_multi_role.presentation.wording import duration
from codex_multi_role.run_folder import Record, RunFolder
from codex_multi_role.run_options import RunOptions, recorded_report

if TYPE_CHECKING:
    from codex_multi_role.option_keywords import ForkKeywords, ResumeKeywords

GIVEN_NOW = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
LONGEST_NAP_SECONDS = 30.0
RUNNING = "codex_multi_role.lifecycle.running"


@command(
    RUNS_DIR,
    *CHANGEABLE,
    WAIT,
    *OF_THIS_PROCESS,
    works=True,
    use=Use.RESUME,
    finds=True,
)
@run_argument
@click.pass_context
def resume(ctx: click.Context, /, run: str, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Resume RUN (default: the latest run) where it stopped.

    A run remembers its options. Options given here, as flags or in the environment, replace them from now on; -i and
    -c add to them. codex-multi-role.yaml does not change them.

    A run elsewhere continues there, and is shown as by `watch`: Ctrl-C stops watching, not the run.

    \b
    Examples:
      codex-multi-role resume
      codex-multi-role resume 20260131_101500 --cycles 6 --model gpt-5-codex
      codex-multi-role resume --wait
    """
    found = find_either(run, values["runs_dir"])
    folder = found if isinstance(found, RunFolder) else found.folder()
    record = folder.record()
    changes = changes_of(ctx, record["options"])
    say_changes(ctx, changes)
    if not isinstance(found, RunFolder):
        _resume_remote(ctx, found, changes)
        return
    changes |= said_too(ctx, folder, record)  # type: ignore[typeddict-item]  # made from the same table
    if values["wait"]:
        _wait_for_quota(record, quiet=values["quiet"] or values["json"])
    resume_run(ctx, folder, changes)


@command(
    RUNS_DIR,
    START,
    TASK,
    *FORKABLE,
    *OF_THIS_PROCESS,
    works=True,
    use=Use.FORK,
)
@run_argument
@click.pass_context
def fork(ctx: click.Context, /, run: str, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Start a new run with the history of RUN (default: the latest) up to a step.

    The turns before the step are not repeated, and the roles remember nothing later. The workspace is restored in a new
    folder as it was then, without .git, caches and ignored files. RUN may still be running; it is not changed.

    The new run has the options of RUN. Options given here, or in the environment, replace them; -i and -c add to them.
    With --flow, the inputs of RUN are not carried over. Flow and roles must lead to the step the same way as before.

    With --task, one ended item of a fan-out is done again, together with the items that need it and everything after
    them. All other results are kept and not paid for again. RUN must not be running then.

    \b
    Examples:
      codex-multi-role fork --from develop:2 --goal "The same in Rust"
      codex-multi-role fork --task T3
      codex-multi-role fork 2026 --from plan --roles ../other/roles
    """
    start_from(ctx, *parent_and_changes(ctx, run), f"{RUNNING}:fork", start=values["from"], task=values["task"])


def parent_and_changes(ctx: click.Context, run: str) -> tuple[RunFolder, ForkKeywords]:
    """The run that a new one starts from, and the options that differ. Raises `RunNotFound`, `UsageError`."""
    folder = RunFolder.find(ctx.params["runs_dir"], run)
    record = folder.record()
    changes = changes_of(ctx, record["options"], FORKABLE)
    say_changes(ctx, changes)
    return folder, {**changes, **said_too(ctx, folder, record)}  # type: ignore[typeddict-item]  # as above


def said_too(ctx: click.Context, folder: RunFolder, record: Mapping[str, Any]) -> dict[str, Any]:
    """What the settings say as well as the record of a run from elsewhere. Raises `UsageError` for its own ``config``.

    That is added to what is given.
    """
    own = resolve_name("codex_multi_role.lifecycle.own_records")  # here: it is slow to import
    if own.is_own(record, folder):
        return {}
    options = record["options"]
    values = {**ctx.params, **{finder.setting.key: value for finder, value in ctx.meta.get(PLACES, ())}}
    if ctx.get_parameter_source("config") in GIVEN_NOW:
        own.require_said(f"run {folder.run_id}", {"config": options["config"]}, values)
    said = {name: values[name] for name in own.of_trust(options) if name in values}
    return {name: each for name, each in said.items() if RunOptions(**{name: each}).as_record()[name] == options[name]}


def start_from(ctx: click.Context, parent: RunFolder, changes: ForkKeywords, how: str, **point: Any) -> None:  # noqa: ANN401
    """Start a run from another with the function ``how`` (``module:name``), and exit with its code."""
    start = resolve_name(how)  # here: it is slow to import
    course = Course()
    with in_foreground(ctx, course) as callbacks:
        view = callbacks["on_event"]

        def on_event(record: Record) -> None:
            if not course.began:
                course.inherit(inherited_by(RunFolder(Path(record["folder"]))))
            view(record)

        callbacks["on_event"] = on_event
        report = start(parent.run_id, runs_dir=parent.path.parent, changes=changes, **point, **callbacks)
    report_and_exit(ctx, report, course)


def resume_run(ctx: click.Context, folder: RunFolder, changes: ResumeKeywords) -> None:
    """Resume the run and exit with its code; ``ctx`` has the settings ``runs_dir`` and `OF_THIS_PROCESS`."""
    import codex_multi_role.lifecycle.running as running

    course = Course.of_run(folder)
    with in_foreground(ctx, course) as callbacks:
        report = running.resume(folder.run_id, runs_dir=folder.path.parent, changes=changes, **callbacks)
    report_and_exit(ctx, report, course)


def _resume_remote(ctx: click.Context, found: RemoteRun, changes: Mapping[str, Any]) -> None:
    """Enqueue the run, show it until it ends, and exit with its code."""
    if ctx.params["wait"]:
        raise UsageError("--wait cannot be used for a run elsewhere", "It continues by itself when the limit is reset.")
    found.resume(changes)
    folder, course = view_run(ctx, found)
    report_and_exit(ctx, recorded_report(folder.path, folder.record()), course)


def _wait_for_quota(record: Mapping[str, Any], *, quiet: bool) -> None:
    """Sleep until the usage limit that parked the run of this ``run.json`` resets; return at once without one.

    Uses the wall clock, so time in which the machine slept counts. Ctrl-C ends the wait. Raises `UsageError` if the
    reset time is unknown.
    """
    if record.get("outcome") != QuotaUsedUp.reason:
        return
    resets_at = record.get("resets_at")
    if not resets_at:
        raise UsageError(
            f"--wait: the reset time of the limit that parked run {record['run_id']} is unknown: {record['reason']}",
            "Resume it without --wait after the limit has been reset.",
        )
    end = datetime.fromisoformat(resets_at)
    left = (end - datetime.now(UTC)).total_seconds()
    if left > 0 and not quiet:
        say(f"waiting {duration(left)} until {resets_at}: {record['reason']}")
    while (left := (end - datetime.now(UTC)).total_seconds()) > 0:  # waits: for the time that was given, ended by it
        time.sleep(min(left, LONGEST_NAP_SECONDS))


def say_changes(ctx: click.Context, changes: Mapping[str, Any]) -> None:
    """Print which options of the run change."""
    if changes and not (ctx.params["json"] or ctx.params["quiet"]):
        say(f"changed: {', '.join(f'{name}={value}' for name, value in changes.items())}")


def changes_of(
    ctx: click.Context, remembered: Mapping[str, Any], settings: Sequence[Setting] = CHANGEABLE
) -> ForkKeywords:
    """Return the options given now. Repeatable ones are added to ``remembered``, the run's; inputs, of the same flow.

    Raises `UsageError`.
    """
    keys = [*(setting.key for setting in settings if setting.key != "goal_file"), *added_names(ctx)]
    changes = {key: ctx.params[key] for key in keys if ctx.get_parameter_source(key) in GIVEN_NOW}
    if "input" in changes:
        is_same_flow = "flow" not in changes or changes["flow"] == remembered["flow"]
        kept = remembered["inputs"] if is_same_flow else {}
        changes["inputs"] = {**kept, **parse_inputs(changes.pop("input"))}
    if "config" in changes:
        given = changes["config"]
        changes["config"] = (*(each for each in remembered["config"] if each not in given), *given)
    if any(ctx.get_parameter_source(name) in GIVEN_NOW for name in ("goal", "goal_file")):
        changes["goal"] = choose_goal(ctx)
    return cast("ForkKeywords", changes)  # because settings are made from the same table
