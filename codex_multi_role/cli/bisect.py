"""``bisect``: the turn that first made a command fail, or pass, found by executing it on the recorded states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from codex_multi_role.cli.options import CODEX_BIN, JSON, PYTHON, RUNS_DIR, TEST_SANDBOX, command, run_argument
from codex_multi_role.cli.output import put_json, put_line, say
from codex_multi_role.cli.settings import SettingsCommand, finite
from codex_multi_role.errors import ExitCode, UsageError
from codex_multi_role.presentation.wording import duration, one_line, plural
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunOptions, RunTests

if TYPE_CHECKING:
    from codex_multi_role.history.bisecting import Bisection, Outcome
    from codex_multi_role.history.recorded_states import RecordedState
    from codex_multi_role.lifecycle.trials import Trial, Trials

T = TypeVar("T")
END_OF_OPTIONS = "--"
REPEAT, MAX_REPEAT = 5, 25
"""With a tenth of the results wrong, repeating three times leads to a wrong turn in 0.3 % of the searches, five times
in 0.01 % (measured)."""
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


@command(
    RUNS_DIR, TEST_SANDBOX, PYTHON, CODEX_BIN, JSON, cls=CommandAtTheEnd, short_help="Find the turn that broke it."
)
@run_argument
@click.option(
    "--repeat",
    type=click.IntRange(1, MAX_REPEAT),
    default=REPEAT,
    metavar="N",
    show_default=True,
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
def bisect(
    run: str,
    argv: list[str],
    repeat: int,
    seconds: float,
    runs_dir: Path,
    test_sandbox: bool,
    python: Path | None,
    codex_bin: Path | None,
    json: bool,
) -> None:
    """Find the turn of RUN (default: the latest run) that first made COMMAND fail, or pass.

    The recorded states of the workspace are restored in a temporary folder, one after the other, and COMMAND is
    executed there in the sandbox of the tests. Exit code 0 is a pass, 125 means that a state cannot be judged, any
    other is a failure. The last line names run, role and turn; if no single change is found, the exit code is 1.

    \b
    Examples:
      codex-multi-role bisect -- pytest -q test_roman.py
      codex-multi-role bisect 2026 --seconds 20 -- sh -c 'make && ./shop --version'
    """
    from codex_multi_role.history import history_of, result_of  # here: `--help` needs none of it
    from codex_multi_role.history.bisecting import bisect_states
    from codex_multi_role.history.recorded_states import states_in_line
    from codex_multi_role.lifecycle.stopping import stop_signals
    from codex_multi_role.lifecycle.trials import trials_of

    history = history_of(RunFolder.find(runs_dir, run))
    result_of(history)  # raises if the run recorded nothing
    line = states_in_line(history)
    if len(line) == 1:
        raise UsageError(f"run {history.folder.run_id} changed no files", "No turn can have changed the result.")
    options = RunOptions(test_sandbox=test_sandbox, python=python, codex_bin=codex_bin, test_seconds=seconds)
    with stop_signals(lambda: None), trials_of(history, argv, options) as trials:
        executor = _Executor(trials, line)
        found = bisect_states(len(line), executor.execute, repeat)
    executor.show_output(found)
    if json:
        put_json({"run": history.folder.run_id, **_as_json(found, line)})
    else:
        put_line(_effort(found))
        put_line(f"run {history.folder.run_id}: {_result(found, executor.names)}")
    if not found.changed or sum(len(state.changes) for state in _at_border(found, line)) > 1:
        raise click.exceptions.Exit(ExitCode.GOAL_NOT_REACHED)


def _at_border(found: Bisection, line: Sequence[T]) -> Sequence[T]:
    """Of a sequence with one element per state, those that led from the one result to the other."""
    return line[found.before + 1 : found.after + 1]


class _Executor:
    """Executes the states of ``line`` by their numbers, and prints how each ended. ``names``: of their changes."""

    def __init__(self, trials: Trials, line: Sequence[RecordedState]) -> None:
        self._trials = trials
        self._line = line
        self._failed: dict[int, Trial] = {}
        self.names = list(_names(line))

    def execute(self, index: int) -> Outcome | None:
        """Raises `UsageError` for a program that does not exist even at the end of the run, such as a misspelt one."""
        trial = self._trials.run(self._line[index])
        name = self._name(index)
        if trial is None:
            say(f"{name}: cannot be restored")
            return None
        if not trial.could_run and not self._failed and index == len(self._line) - 1:
            raise UsageError(trial.reason, "Name a program on PATH, or one that is in the workspace at the end.")
        for warning in trial.warnings:
            say(f"warning: {warning}")
        if trial.outcome == "fail":
            self._failed[index] = trial
        reason = f" ({one_line(trial.reason)})" if trial.reason else ""
        say(f"{name}: {VERBS[trial.outcome]}{reason} in {duration(trial.seconds)}")
        return trial.outcome

    def show_output(self, found: Bisection) -> None:
        """Print the end of what the command printed where it fails, beside the change."""
        index = found.after if found.last == "fail" else found.before
        if index in self._failed and self._failed[index].output:
            say(f"{self._name(index)}, end of the output:")
            for line in self._failed[index].output.splitlines()[-SHOWN_LINES:]:
                say(f"  {line}")

    def _name(self, index: int) -> str:
        return ", ".join(self.names[index]) or "before the first change"


def _names(line: Sequence[RecordedState]) -> Iterator[list[str]]:
    """The names of each state's changes; one without a role is named after the turn before it."""
    latest = "before the first turn"
    for state in line:
        names = []
        for change in state.changes:
            if change.role:
                names.append(f"{change.role} turn {change.turn}")
                latest = f"after {names[-1]}"
            else:
                names.append(f"a change between turns ({latest})")
        yield names


def _effort(found: Bisection) -> str:
    why = "because the results vary: the command is flaky" if found.is_flaky else "to confirm"
    return f"{plural(found.executions, 'execution')}, {found.confirmations} more {why}"


def _result(found: Bisection, names: Sequence[list[str]]) -> str:
    if found.last == "unknown":
        return "no turn found, because the last state cannot be judged"
    if not found.changed:
        which = "in every state that can be judged" if found.after else "before the first change and at the end"
        return f"no turn found, because the command {VERBS[found.last]} {which}"
    candidates = [name for each in _at_border(found, names) for name in each]
    if len(candidates) == 1:
        return f"{candidates[0]} first made it {found.last}"
    return f"one of these first made it {found.last}: {', '.join(candidates)}"


def _as_json(found: Bisection, line: Sequence[RecordedState]) -> dict[str, Any]:
    changes = [change for state in _at_border(found, line) for change in state.changes if found.changed]
    candidates = [{"role": each.role, "turn": each.turn, "unit": each.unit} for each in changes]
    single = candidates[0] if len(candidates) == 1 else {"role": "", "turn": 0, "unit": ""}
    return {
        **single,
        "became": found.last if found.changed else "",
        "executions": found.executions,
        "confirmations": found.confirmations,
        "flaky": found.is_flaky,
        "candidates": candidates,
    }
