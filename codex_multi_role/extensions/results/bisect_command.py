"""``bisect``: the turn that first made a command fail, or pass, found by executing it on the recorded states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from codex_multi_role.cli.options import CODEX_BIN, JSON, PYTHON, RUNS_DIR, TEST_SANDBOX, command, run_argument
from codex_multi_role.cli.output import put_json, put_line, say
from codex_multi_role.cli.setting import finite
from codex_multi_role.cli.settings import SettingsCommand
from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.results.trials import bisect as bisect_run
from codex_multi_role.lifecycle.stopping import stop_signals
from codex_multi_role.presentation.wording import duration, one_line, plural
from codex_multi_role.run_options import RunTests

if TYPE_CHECKING:
    from codex_multi_role.extensions.results.trials import BisectedRun, Trial

END_OF_OPTIONS = "--"
SHOWN_LINES = 10
VERBS = {"pass": "passes", "fail": "fails", "unknown": "cannot be judged"}


class CommandAtTheEnd(SettingsCommand):
    """Ends with a command of the user's, after ``--``, which click itself would drop."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), f"{END_OF_OPTIONS} COMMAND..."]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index(END_OF_OPTIONS) if END_OF_OPTIONS in args else len(args)
        left = super().parse_args(ctx, args[:at])
        ctx.params["argv"] = args[at + 1 :]
        if not ctx.params["argv"] and not ctx.resilient_parsing:
            raise click.UsageError("missing COMMAND: put it after `--`, as in `bisect -- pytest -q`", ctx)
        return left


@command(RUNS_DIR, TEST_SANDBOX, PYTHON, CODEX_BIN, JSON, cls=CommandAtTheEnd)
@run_argument
@click.option(
    "--repeat",
    type=click.IntRange(1),
    metavar="N",
    show_default="5",  # `bisecting.REPEAT`, which `--help` does not load
    help="Execute the states before and after the turn N times, to notice results that vary.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=RunTests.test_seconds,
    callback=finite,
    metavar="SECONDS",
    show_default=True,
    help="Time limit for each execution; one that takes longer fails.",
)
def bisect(run: str, argv: list[str], json: bool, **options: Any) -> None:  # noqa: ANN401 - those of `trials.bisect`
    """Find the turn of RUN (default: the latest run) that first made COMMAND fail, or pass.

    The recorded states of the workspace are restored in a temporary folder, one after the other, and COMMAND is
    executed there in the sandbox of the tests. Exit code 0 is a pass, 125 means that a state cannot be judged, any
    other is a failure. The last line names run, role and turn; if no single change is found, the exit code is 1.

    \b
    Examples:
      codex-multi-role bisect -- pytest -q test_roman.py
      codex-multi-role bisect 2026 --seconds 20 -- sh -c 'make && ./shop --version'
    """
    given = {name: value for name, value in options.items() if value is not None}
    with stop_signals(lambda: None):
        found = bisect_run(run, argv, on_trial=_say_trial, **given)
    _say_output(found)
    if json:
        put_json(_as_json(found))
    else:
        put_line(_effort(found))
        put_line(f"run {found.run_id}: {_result(found)}")
    if len(found.candidates) != 1:
        raise click.exceptions.Exit(ExitCode.GOAL_NOT_REACHED)


def _say_trial(name: str, trial: Trial | None) -> None:
    if trial is None:
        say(f"{name}: cannot be restored")
        return
    for warning in trial.warnings:
        say(f"warning: {warning}")
    reason = f" ({one_line(trial.reason)})" if trial.reason else ""
    say(f"{name}: {VERBS[trial.outcome]}{reason} in {duration(trial.seconds)}")


def _say_output(found: BisectedRun) -> None:
    """Print the end of what the command printed where it fails, beside the change."""
    if found.output:
        say(f"{found.state}, end of the output:")
        for line in found.output.splitlines()[-SHOWN_LINES:]:
            say(f"  {line}")


def _effort(found: BisectedRun) -> str:
    why = "because the results vary: the command is flaky" if found.is_flaky else "to confirm"
    return f"{plural(found.executions, 'execution')}, {found.confirmations} more {why}"


def _result(found: BisectedRun) -> str:
    if found.last == "unknown":
        return "no turn found, because the last state cannot be judged"
    if not found.changed:
        which = "in every state that can be judged" if found.after else "before the first change and at the end"
        return f"no turn found, because the command {VERBS[found.last]} {which}"
    if len(found.names) == 1:
        return f"{found.names[0]} first made it {found.last}"
    return f"one of these first made it {found.last}: {', '.join(found.names)}"


def _as_json(found: BisectedRun) -> dict[str, Any]:
    candidates = [{"role": each.role, "turn": each.turn, "unit": each.unit} for each in found.candidates]
    single = candidates[0] if len(candidates) == 1 else {"role": "", "turn": 0, "unit": ""}
    return {
        "run": found.run_id,
        **single,
        "became": found.last if found.changed else "",
        "executions": found.executions,
        "confirmations": found.confirmations,
        "flaky": found.is_flaky,
        "candidates": candidates,
    }
