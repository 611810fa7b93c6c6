"""What extensions add to the commands that work on a run: entry points of ``codex_multi_role.run_additions``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.decision import approve
from codex_multi_role.cli.main import group
from codex_multi_role.cli.run import run
from codex_multi_role.cli.run_additions import report_end
from codex_multi_role.cli.settings import SettingsCommand
from codex_multi_role.errors import UsageError
from codex_multi_role.presentation.course import Course
from codex_multi_role.run_options import RunReport
from tests.support.plugins import install

SOURCE = """
from pathlib import Path
from codex_multi_role.cli.run_additions import RunAddition
from codex_multi_role.cli.setting import Setting

def ended(ctx, report, progress):
    Path("told").write_text(f"{ctx.params['tell']} {report.exit_code}")
    raise ZeroDivisionError("nobody listens")

def failed(ctx, error):
    Path("told").write_text(f"{ctx.params['tell']} {error}")

def left(ctx):
    Path("told").write_text(f"{ctx.params['tell']} left")

settings = [Setting(["--tell"], metavar="WHOM", help="Tell WHOM."), Setting(["--flow"], help="Not ours.")]
tell = RunAddition(settings, ended, failed, left)
"""
REPORT = RunReport("first", Path("first"), "ended", "cycles_used_up", "", 1, "", {})


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "run_additions", ["tell"], SOURCE, ["broken = extra_run_additions:no_such"])
    monkeypatch.chdir(tmp_path)


def called(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments, prog_name="codex-multi-role")


def params(*arguments: str, command: SettingsCommand = run) -> dict[str, object]:
    with command.make_context("x", list(arguments)) as context:
        return context.params


@pytest.mark.parametrize("arguments", [("make it", "--tell", "Ada"), ("--tell=Ada", "--cycles", "2")])
def test_option_is_accepted_beside_ours(arguments: tuple[str, ...]) -> None:
    assert params(*arguments)["tell"] == "Ada"
    assert params("--tell", "Ada", command=approve)["tell"] == "Ada"


@pytest.mark.extensions  # `config show`
def test_option_is_a_variable_and_a_key_of_settings_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("codex-multi-role.yaml").write_text("tell: Ada\n")
    assert params("make it")["tell"] == "Ada"
    monkeypatch.setenv("CODEX_MULTI_ROLE_TELL", "Bob")
    assert params("make it")["tell"] == "Bob"
    assert capsys.readouterr().err == ""
    shown = [line.split() for line in called("config", "show").output.splitlines()]
    assert ["tell", "Bob", "CODEX_MULTI_ROLE_TELL"] in shown


def test_help_and_completion_list_it() -> None:
    assert "--tell WHOM" in called("run", "--help").output
    with run.make_context("run", [], resilient_parsing=True) as context:
        assert "--tell" in [each.value for each in run.shell_complete(context, "--te")]


def test_it_replaces_none_of_ours() -> None:
    assert "Not ours" not in called("run", "--help").output
    assert params("--tell", "Ada")["flow"] == params()["flow"]


def test_unknown_option_is_still_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, ["run", "--tel", "Ada"]) == 2
    assert capsys.readouterr().err.startswith('error: unknown option "--tel"; did you mean "--tell"?')


@pytest.mark.parametrize("arguments", [["make it", "--cycles=2", "-i", "a=b", "--goal-file", "-"], ["--no-run-tests"]])
def test_nothing_is_looked_up_for_our_own_options(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def no_look(_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("codex_multi_role.reading.registry._installed", no_look)
    with run.make_context("run", arguments) as context:
        assert "tell" not in context.params
        report_end(context, REPORT, Course())


def test_end_is_reported_and_a_failure_there_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with run.make_context("run", ["--tell", "Ada"]) as context:
        report_end(context, REPORT, Course())
    assert Path("told").read_text() == "Ada 1"
    warning = "warning: the run has ended and the exit code stays 1, but the reports failed: nobody listens\n"
    assert capsys.readouterr().err == warning


def test_error_before_the_run_is_reported() -> None:
    with pytest.raises(UsageError):
        group.main(["run", "--tell", "Ada", "--flow", "nowhere"], standalone_mode=False)
    assert "nowhere" in Path("told").read_text()
