from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from codex_multi_role.cli.options import RUN
from codex_multi_role.cli.run import NOT_OF_THE_RUN, run
from codex_multi_role.cli.settings import FILE
from codex_multi_role.errors import DefinitionError
from codex_multi_role.run_options import RunOptions
from tests.support.catalogs import message_at


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def settings_of(*arguments: str) -> dict[str, Any]:
    with run.make_context("run", list(arguments)) as context:
        return context.params


def write(text: str) -> None:
    Path(FILE).write_text(text)


THREE_SOURCES = [
    ("cycles", ["--cycles", "7"], "6", "cycles: 5", (7, 6, 5, 3)),
    ("repair_attempts", ["--repair-attempts", "0"], "1", "repair-attempts: 4", (0, 1, 4, 2)),
    ("test_seconds", ["--test-seconds", "0.5"], "7", "test_seconds: 9.5", (0.5, 7.0, 9.5, 300.0)),
    ("model", ["--model", "a"], "b", "model: c", ("a", "b", "c", None)),
    ("run_tests", ["--run-tests"], "0", "run-tests: false", (True, False, False, True)),
    ("test_sandbox", ["--no-test-sandbox"], "yes", "test_sandbox: off", (False, True, False, True)),
    ("yes", ["--yes"], "0", "yes: true", (True, False, True, False)),
    ("json", ["--json"], "true", "json: yes", (True, True, True, False)),
    ("runs_dir", ["--runs-dir", "a"], "b", "runs-dir: c", (Path("a"), Path("b"), Path("c"), Path("runs"))),
    (
        "config",
        ["-c", "a=1", "--config", "b=2"],
        "c=3 'd=4 5'",
        "config: [e=6, f=7]",
        (("a=1", "b=2"), ("c=3", "d=4 5"), ("e=6", "f=7"), ()),
    ),
    ("input", ["-i", "a=1"], "b=2", "input: {c: 3, d: true}", (("a=1",), ("b=2",), ("c=3", "d=true"), ())),
]


@pytest.mark.parametrize(("name", "flag", "variable", "line", "values"), THREE_SOURCES)
def test_flag_before_environment_before_file_before_default(
    name: str, flag: list[str], variable: str, line: str, values: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings_of()[name] == values[3]
    write(line)
    assert settings_of()[name] == values[2]
    monkeypatch.setenv(f"CODEX_MULTI_ROLE_{name.upper()}", variable)
    assert settings_of()[name] == values[1]
    assert settings_of(*flag)[name] == values[0]


def test_one_text_stands_for_a_list_of_one() -> None:
    write("config: model_provider=local")
    assert settings_of()["config"] == ("model_provider=local",)


@pytest.mark.parametrize("text", ["", "# cycles: 5\n\n", "cycles:\n"])
def test_file_that_sets_nothing_changes_nothing(text: str) -> None:
    write(text)
    assert settings_of()["cycles"] == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cylces: 3", 'there is no setting "cylces"; did you mean "cycles"?'),
        ("Runs_Dir: x", 'there is no setting "Runs_Dir"; did you mean "runs-dir"?'),
        ("- cycles", "must be a mapping"),
        ("cycles: 1\ncycles: 2", "duplicate key"),
        ("cycles: [1]", "cycles: must be one text, number, true or false"),
        ("config: [[a]]", "config[0]: must be one text, number, true or false"),
        ("input: {a: {b: 1}}", "input.a: must be one text, number, true or false"),
        ("cycles: *", "not valid YAML: "),
    ],
)
def test_wrong_file_is_named_with_its_place(text: str, message: str) -> None:
    write(text)
    with pytest.raises(DefinitionError) as caught:
        settings_of()
    assert message_at(Path(FILE), caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cycles: 0", f"Invalid value for cycles ({FILE}): 0 is not in the range x>=1."),
        ("cycles: true", f"Invalid value for cycles ({FILE}): 'true' is not a valid integer range."),
        ("run-tests: perhaps", f"Invalid value for run-tests ({FILE}): 'perhaps' is not a valid boolean."),
        ("config: novalue", f"Invalid value for config ({FILE}): 'novalue' does not look like key=value"),
        ("goal: ' '", f"Invalid value for goal ({FILE}): it is empty"),
    ],
)
def test_wrong_value_names_the_file_it_came_from(text: str, message: str) -> None:
    write(text)
    with pytest.raises(click.UsageError) as caught:
        settings_of()
    assert caught.value.format_message().startswith(message)


@pytest.mark.parametrize(
    ("name", "value"), [("CYCLES", "many"), ("CONFIG", "it's"), ("INPUT", "=1"), ("RUN_TESTS", "2")]
)
def test_wrong_value_names_the_variable_it_came_from(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"CODEX_MULTI_ROLE_{name}", value)
    with pytest.raises(click.UsageError) as caught:
        settings_of()
    assert f"CODEX_MULTI_ROLE_{name} (environment)" in caught.value.format_message()


def test_help_does_not_read_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    write("cylces: 3")
    with pytest.raises(click.exceptions.Exit):
        settings_of("--help")
    assert "--cycles N" in capsys.readouterr().out


def test_settings_and_run_options_have_the_same_defaults() -> None:
    """The settings and the fields of the run options are also the same."""
    by_key = {setting.key: setting for setting in RUN}
    renamed = {"input": "inputs"}
    assert {renamed.get(key, key) for key in by_key.keys() - (NOT_OF_THE_RUN - {"input"})} == set(
        RunOptions.__dataclass_fields__
    )
    assert settings_of()["workspace"] == RunOptions(goal="x").workspace


def test_misspelt_variable_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing fails, because another program may have set it; those of a run's own processes are known."""
    for name in ("CYLCES", "CYCLES", "DEBUG", "RUN", "COMMAND", "TESTS_OVERDUE", "MEASURING", "TOKEN"):
        monkeypatch.setenv(f"CODEX_MULTI_ROLE_{name}", "3")
    assert settings_of()["cycles"] == 3
    expected = 'unknown environment variable "CODEX_MULTI_ROLE_CYLCES"; did you mean "CODEX_MULTI_ROLE_CYCLES"?'
    assert capsys.readouterr().err == f"warning: {expected}\n"
