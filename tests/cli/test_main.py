"""The console command in a process of its own: entry points, exit codes, streams, imports, and its main job."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import codex_multi_role
from codex_multi_role.cli.main import group
from codex_multi_role.cli.options import RUN
from tests.support.console import completed, console, console_process, environment
from tests.support.teams import TeamFolder, say

HEAVY = {"rich", "dbos", "pydantic", "jinja2", "yaml", "psutil", "jsonschema", "sqlalchemy"}
WHAT_IS_IMPORTED = """
import sys
from codex_multi_role.cli.main import main
code = main()
print(code, *sorted(set(sys.modules) & {heavy}), file=sys.stderr)
"""


@pytest.mark.real
@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["runs"]])
def test_looking_does_not_import_what_only_a_run_needs(arguments: list[str], tmp_path: Path) -> None:
    program = WHAT_IS_IMPORTED.format(heavy=HEAVY)
    done = completed([sys.executable, "-c", program, *arguments], tmp_path, environment())
    assert done.stderr.splitlines()[-1] == "0"


GOALS = [
    ["make it"],
    ["make it", "--cycles", "2"],
    ["run", "make it"],
    ["refactor"],
    ["实现罗马数字"],
    ["--cycles", "2", "make it"],
]


@pytest.mark.parametrize("arguments", GOALS, ids="_".join)
def test_first_argument_can_be_the_goal(arguments: list[str], tmp_path: Path) -> None:
    done = console(*arguments, "--dry-run", folder=tmp_path)
    assert done.returncode == 0
    goal = next(each for each in arguments if each not in ("run", "--cycles", "2"))
    assert f"GOAL OF THE WHOLE TEAM:\n{goal}\n" in done.stdout


def test_goal_on_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "codex-multi-role.yaml").write_text("goal: another\n")
    assert "TEAM:\nmake it\n" in console("make it", "--dry-run", folder=tmp_path).stdout


def test_run_is_the_latest_unless_named() -> None:
    context = click.Context(group)
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    runs = {name: run for name, each in commands.items() if each for run in each.params if run.name == "run"}
    assert {"show", "resume"} <= runs.keys()
    assert [name for name, run in runs.items() if run.required] == []


@pytest.mark.extensions
def test_help_groups_commands_and_options(tmp_path: Path) -> None:
    headings = [line for line in console("--help", folder=tmp_path).stdout.splitlines() if re.match(r"\w.*:$", line)]
    assert headings[:5] == [  # those of extensions follow
        "Run:",
        "Decide:",
        "Look:",
        "Your team:",
        "Set up:",
    ]
    shown = console("run", "--help", folder=tmp_path).stdout
    headings = [line for line in shown.splitlines() if re.match(r"\w.*:$", line)]
    assert headings == [*(f"{heading}:" for heading in dict.fromkeys(each.section for each in RUN))]
    assert shown.index("\nLimits:") < shown.index("--max-turns") < shown.index("\nTests:")


@pytest.mark.real
def test_help_shows_commands_examples_and_exit_codes(tmp_path: Path) -> None:
    done = console_process("--help", folder=tmp_path)
    assert done.returncode == 0
    for words in ("demo", "--cycles 3", "Exit codes:", "130", "--version"):
        assert words in done.stdout
    assert done.stderr == ""


def test_help_fits_a_terminal_of_80_columns() -> None:
    """The list of commands on one screen, and no wall of options."""
    context = click.Context(group, info_name="codex-multi-role", terminal_width=80, max_content_width=80)
    texts = {"": group.get_help(context), **dict(help_texts(group, context))}
    assert [(name, line) for name, text in texts.items() for line in text.splitlines() if len(line) > 80] == []
    assert len(texts[""].splitlines()) <= 60
    of_runs = {name: texts[f"codex-multi-role {name}"] for name in ("run", "resume", "fork")}
    assert {name: lines for name, text in of_runs.items() if (lines := len(text.splitlines())) > 80} == {}
    listed, named = of_runs["run"].rsplit("\n\n", 1)
    assert {each.opts[-1] for each in RUN if each.is_set_once} <= {*re.findall(r"--[a-z-]+", named)}
    assert {each.opts[-1] for each in RUN if each.is_set_once} & {*re.findall(r"^ +(--[a-z-]+)", listed, re.M)} == set()


def help_texts(parent: click.Group, context: click.Context) -> Iterator[tuple[str, str]]:
    for name in parent.list_commands(context):
        command = parent.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, terminal_width=80, max_content_width=80)
        yield f"{context.command_path} {name}", command.get_help(inner)
        if isinstance(command, click.Group):
            yield from help_texts(command, inner)


@pytest.mark.real
def test_installed_script_and_the_module_are_the_same_command(tmp_path: Path) -> None:
    script = Path(sysconfig.get_path("scripts")) / "codex-multi-role"
    done = subprocess.run([script, "--version"], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True)
    assert done.stdout == console_process("--version", folder=tmp_path).stdout
    assert codex_multi_role.__version__ in done.stdout


ENDED = [
    (["bundle"], '"bundle" is not a command any more; record with `run --record FILE`'),
    (["bisect", "--", "pytest"], '"bisect" is not a command any more; `export --branch NAME` makes one commit'),
    (["run", "goal", "--reuse"], '"--reuse" is not an option any more; `codex-multi-role rerun RUN` repeats a run'),
    (["replay-test", "recordings"], '"replay-test" is not a command any more; `run --replay FILE` exits with 3'),
    (["work-on", "first"], '"work-on" is not a command any more; `resume RUN` continues a run'),
    (["workers"], "See `codex-multi-role --help`."),
]
WRONG = [
    *(pytest.param(*each, marks=pytest.mark.extensions) for each in ENDED),
    (["rum", "--goal", "x"], 'unknown command "rum"; did you mean "run"?'),
    (["--cylces", "3"], 'unknown option "--cylces"; did you mean "--cycles"?'),
    (["resume", "latest", "--cylces", "3"], 'unknown option "--cylces"; did you mean "--cycles"?'),
    (["roles", "lst"], 'unknown command "lst"; did you mean "list"?'),
    (["make", "me", "a", "calculator"], 'unknown command "make"; put a goal in quotes'),
    (["make it", "now"], 'unknown command "make it"; put a goal in quotes'),
    (["lst"], 'unknown command "lst"; did you mean "runs"?'),
    (["stop"], 'unknown command "stop"; did you mean "cancel"?'),
    (["Shw", "--json"], 'unknown command "Shw"; did you mean "show"?'),
    (["restart", "--task", "T3"], '"restart" is not a command any more; `fork RUN --task ID` redoes one task'),
    (["cycles"], '"cycles" is the name of a flow, not a goal'),
    ([""], "'[GOAL]': must not be empty"),
    (["make it", "--goal", "x"], "the goal is given twice: GOAL and --goal"),
    ([], "Exit codes:"),
    (["run"], "missing goal"),
    (["--goal", "  "], "'--goal': must not be empty"),
    (["--goal", "x", "--cycles", "0"], "'--cycles': 0 is less than 1"),
    (["--goal", "x", "--cycles", "two"], "'--cycles': 'two' is no whole number"),
    (["--goal", "x", "--repair-attempts", "-1"], "'--repair-attempts': -1 is not from 0 to 10"),
    (["--goal", "x", "--test-seconds", "nan"], "'--test-seconds': 'nan' is not a finite number"),
    (["--goal", "x", "-c", "model"], "'-c' / '--config': 'model' is not of the form key=value"),
    (["--goal", "x", "-i", "=1"], "'-i' / '--input': '=1' is not of the form key=value"),
    (["--goal-file", "nowhere.md"], "'--goal-file': File 'nowhere.md' does not exist."),
    (["--goal", "x", "--workspace", "nowhere"], "nowhere"),
    (["--goal", "x", "--roles", "nowhere"], "nowhere"),
    (["--goal", "x", "--flow", "cycle"], 'did you mean "cycles"?'),
    (["--playbook", "roman-numeral"], "roman-numerals"),
    (["--goal", "x", "--codex-bin", "nowhere"], "nowhere is not an executable file"),
    (["--playbook", "roman-numerals", "--run-id", "../x"], "'../x' cannot be a run id"),
    (["resume"], "there are no runs in /"),
    (["show", "2026"], "there are no runs in /"),
]


@pytest.mark.parametrize(
    ("arguments", "words"), WRONG, ids=lambda value: "_".join(value)[:40] if isinstance(value, list) else ""
)
def test_wrong_usage_is_one_clear_line_and_leaves_nothing(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = console(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""
    assert len([line for line in done.stderr.splitlines() if line.startswith("error: ")]) == (1 if arguments else 0)
    assert list(tmp_path.iterdir()) == []


def test_wrong_settings_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "codex-multi-role.yaml").write_text("cylces: 3\n")
    done = console("--goal", "x", folder=tmp_path)
    assert done.returncode == 2
    assert 'codex-multi-role.yaml:1:1: unknown setting "cylces"; did you mean "cycles"?' in done.stderr
    assert console("--help", folder=tmp_path).returncode == 0


@pytest.mark.real
def test_machines_read_the_events_people_read_the_rest(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {"behaviors": {"can_finish": True}}}, {"one": [say(status="DONE")]})
    done = console_process(*team.command("--json", "--run-id", "first")[3:], folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    recorded = (team.runs / "first" / "events.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in done.stdout.splitlines()] == [json.loads(line) for line in recorded]
    assert "status     succeeded: Done" in console("show", folder=tmp_path).stdout
