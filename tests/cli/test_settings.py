from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest

from codex_multi_role.cli.options import RUN
from codex_multi_role.cli.run import OF_THE_RUN, run
from codex_multi_role.cli.settings import FILE
from codex_multi_role.cli.trust import VARIABLE
from codex_multi_role.errors import DefinitionError
from codex_multi_role.host.settings_files import PYPROJECT
from codex_multi_role.run_options import OPTIONS, RunOptions
from tests.support.catalogs import message_at, raised

DOCS = Path(__file__).parents[2] / "docs/how-to"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "true")


@pytest.fixture
def user_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's settings file, which does not exist yet; its folder does."""
    folder = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    (folder / "codex-multi-role").mkdir()
    return folder / "codex-multi-role/config.yaml"


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


def start_in_subfolder(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make this folder a repository and change to one two levels below; returns the repository's."""
    top = Path.cwd()
    (top / ".git").touch()
    (top / "a/b").mkdir(parents=True)
    monkeypatch.chdir("a/b")
    return top


def test_settings_are_found_up_to_the_repository_root(monkeypatch: pytest.MonkeyPatch) -> None:
    write("cycles: 5\nroles: team\nruns-dir: ../elsewhere\nplaybook: own.yaml\ngoal-file: '-'\n")
    top = start_in_subfolder(monkeypatch)
    found = settings_of()
    assert (found["cycles"], found["roles"], found["goal_file"]) == (5, top / "team", Path("-"))
    assert (found["runs_dir"], found["playbook"]) == (top / "../elsewhere", str(top / "own.yaml"))
    Path("../" + FILE).write_text("cycles: 4\nplaybook: circle\n")
    found = settings_of()
    assert (found["cycles"], found["roles"], found["playbook"]) == (4, None, "circle")


def test_wrong_value_above_names_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    write("cycles: 0")
    top = start_in_subfolder(monkeypatch)
    error = raised(click.UsageError, settings_of)
    assert f"Invalid value for cycles ({top / FILE}): 0 is" in error.format_message()


def test_user_file_fills_in_what_the_nearest_leaves_open(user_settings: Path) -> None:
    user_settings.write_text("cycles: 7\nmodel: own\nruns-dir: runs\n")
    write("cycles: 5")
    found = settings_of()
    assert (found["cycles"], found["model"], found["runs_dir"]) == (5, "own", user_settings.parent / "runs")


def test_home_shortens_paths_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/user")
    write("python: ~/env\nroles: ~/team\n")
    assert settings_of()["roles"] == Path("/home/user/team")


def test_program_of_a_file_is_not_taken_from_the_current_folder(
    user_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path, tmp_path / "programs"):
        folder.mkdir(exist_ok=True)
        (folder / "codex").touch(mode=0o755)
    user_settings.write_text("codex-bin: codex")
    assert settings_of()["codex_bin"] == user_settings.parent / "codex"
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    assert settings_of()["codex_bin"] == tmp_path / "programs/codex"


def test_table_of_pyproject_holds_settings() -> None:
    Path(PYPROJECT).write_text(
        '[project]\nname = "x"\n[tool.codex-multi-role]\ncycles = 6\nrun-tests = false\ninput = {a = 1}\nmodel = "m"\n'
    )
    found = settings_of()
    assert (found["cycles"], found["run_tests"], found["input"], found["model"]) == (6, False, ("a=1",), "m")
    write("cycles: 5")
    assert (settings_of()["cycles"], settings_of()["model"]) == (5, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cylces = 3", 'cylces: unknown setting "cylces"; did you mean "cycles"?'),
        ("cycles = 1979-05-27", "cycles: must be one text, number, true or false"),
        ("cycles = ", "Invalid value (at line 2, column 10)"),
    ],
)
def test_wrong_table_of_pyproject_is_named_with_its_place(text: str, message: str) -> None:
    Path(PYPROJECT).write_text(f"[tool.codex-multi-role]\n{text}\n")
    assert f"{PYPROJECT}: {message}" in str(raised(DefinitionError, settings_of))


def test_other_pyproject_may_be_broken() -> None:
    Path(PYPROJECT).write_text("[tool.other\n")
    assert settings_of()["cycles"] == 3


@pytest.mark.parametrize("text", ["", "# cycles: 5\n\n", "cycles:\n"])
def test_file_that_sets_nothing_changes_nothing(text: str) -> None:
    write(text)
    assert settings_of()["cycles"] == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cylces: 3", 'unknown setting "cylces"; did you mean "cycles"?'),
        ("Runs_Dir: x", 'unknown setting "Runs_Dir"; did you mean "runs-dir"?'),
        ("- cycles", "must be a mapping"),
        ("cycles: 1\ncycles: 2", "duplicate key"),
        ("cycles: [1]", "cycles: must be one text, number, true or false"),
        ("config: [[a]]", "config[0]: must be one text, number, true or false"),
        ("input: {a: {b: 1}}", "input.a: must be one text, number, true or false"),
        ("cycles: *", "not valid YAML: "),
        ("workspace: {copyy: x}", 'workspace: unknown key "copyy"; did you mean "copy"?'),
        ("workspace: {setup: [a]}", "workspace.setup: must be one text, number, true or false"),
    ],
)
def test_wrong_file_is_named_with_its_place(text: str, message: str) -> None:
    write(text)
    assert message_at(Path(FILE), raised(DefinitionError, settings_of)).startswith(message)


def test_all_mistakes_of_a_file_are_reported() -> None:
    write("cylces: 3\nmodel: gpt\nconfig: [[a]]\n")
    error = raised(DefinitionError, settings_of)
    assert [message_at(Path(FILE), each).split()[0] for each in error.problems] == ["unknown", "config[0]:"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cycles: 0", f"Invalid value for cycles ({FILE}): 0 is not in the range x>=1."),
        ("cycles: true", f"Invalid value for cycles ({FILE}): 'true' is not a valid integer range."),
        ("run-tests: perhaps", f"Invalid value for run-tests ({FILE}): 'perhaps' is not a valid boolean."),
        ("config: novalue", f"Invalid value for config ({FILE}): 'novalue' is not of the form key=value"),
        ("goal: ' '", f"Invalid value for goal ({FILE}): must not be empty"),
        ("workspace: {setup: ' '}", f"Invalid value for workspace ({FILE}): must not be empty"),
    ],
)
def test_wrong_value_names_the_file_it_came_from(text: str, message: str) -> None:
    write(text)
    assert raised(click.UsageError, settings_of).format_message().startswith(message)


@pytest.mark.parametrize(
    ("name", "value"), [("CYCLES", "many"), ("CONFIG", "it's"), ("INPUT", "=1"), ("RUN_TESTS", "2")]
)
def test_wrong_value_names_the_variable_it_came_from(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"CODEX_MULTI_ROLE_{name}", value)
    assert f"CODEX_MULTI_ROLE_{name} (environment)" in raised(click.UsageError, settings_of).format_message()


def test_help_does_not_read_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    write("cylces: 3")
    with pytest.raises(click.exceptions.Exit):
        settings_of("--help")
    assert "--cycles N" in capsys.readouterr().out


def test_settings_and_run_options_have_the_same_defaults() -> None:
    """The settings and the fields of the run options are also the same."""
    by_key = {setting.key: setting for setting in RUN}
    renamed = {"input": "inputs"}
    assert {renamed.get(key, key) for key in by_key.keys() & (OF_THE_RUN | {"input"})} == OPTIONS.keys()
    assert settings_of()["workspace"] == RunOptions(goal="x").place.workspace


EXAMPLES = re.findall(r"^```(yaml|toml)\n(.*?)^```", (DOCS / "settings.md").read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("language", "text"), EXAMPLES)
def test_documented_settings_are_read_as_they_are(language: str, text: str) -> None:
    Path({"yaml": FILE, "toml": PYPROJECT}[language]).write_text(text)
    assert settings_of()
    assert {"yaml", "toml"} == {name for name, _ in EXAMPLES}


@pytest.mark.extensions
def test_misspelt_variable_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing fails, because another program may have set it; those of a run's own processes are known."""
    for name in ("CYLCES", "CYCLES", "DEBUG", "RUN", "COMMAND", "TESTS_OVERDUE", "MEASURING", "TOKEN"):
        monkeypatch.setenv(f"CODEX_MULTI_ROLE_{name}", "3")
    assert settings_of()["cycles"] == 3
    expected = 'unknown environment variable "CODEX_MULTI_ROLE_CYLCES"; did you mean "CODEX_MULTI_ROLE_CYCLES"?'
    assert capsys.readouterr().err == f"warning: {expected}\n"


WORKSPACE = """\
workspace:
  path: shop
  copy: [.env, "conf/*"]
  setup: uv sync --offline
"""


def test_workspace_can_be_a_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a table of pyproject.toml, too; a flag and a variable come before each of its keys."""
    write(WORKSPACE)
    names = ("workspace", "workspace_copy", "workspace_setup")
    assert [settings_of()[name] for name in names] == [Path("shop"), (".env", "conf/*"), "uv sync --offline"]
    monkeypatch.setenv("CODEX_MULTI_ROLE_WORKSPACE_SETUP", "make env")
    assert [settings_of("--workspace", "x")[name] for name in names] == [Path("x"), (".env", "conf/*"), "make env"]
    Path(FILE).unlink()
    Path(PYPROJECT).write_text('[tool.codex-multi-role.workspace]\ncopy = ".env"\n')
    assert [settings_of()[name] for name in names] == [Path(), (".env",), "make env"]
