"""The programs of the page, exactly as printed, do what it says, and a type checker that is not mypy accepts them.

Costs: nine runs without a model, and a type checker that reads the package.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from codex_multi_role import runs
from codex_multi_role.run_folder.typed_answers import user_name
from tests.docs.pages import blocks
from tests.support.catalogs import raised
from tests.support.plugins import distribution
from tests.support.processes import wait_for

pytestmark = [pytest.mark.extensions, pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

NAMES = ("callbacks", "web_application", "with_asyncio", "many_goals", "todo_check", "table_of_runs")
PROGRAMS = {
    name: block.text
    for name, block in zip(
        NAMES, (each for each in blocks("docs/how-to/python-programs.md") if each.language == "python"), strict=True
    )
}
Program = Callable[[str], str]
"""Runs one of the programs in the folder of the test, and returns what it printed."""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    monkeypatch.chdir(tmp_path)

    def play(name: str) -> str:
        (file := tmp_path / f"{name}.py").write_text(PROGRAMS[name])
        runpy.run_path(str(file), run_name="__main__")
        return capsys.readouterr().out

    return play


def test_callbacks_follow_and_decide(program: Program) -> None:
    said = program("callbacks").splitlines()
    assert said[0].startswith("writer: ")
    assert said[1:3] == ["Publish it? ['ship', 'hold']", f"{user_name()} chose ship"]
    assert said[-1] == "success 0"


def test_runs_of_asyncio_end_side_by_side(program: Program) -> None:
    said = program("with_asyncio").splitlines()
    assert said[-3:] == [f"{name}: cycles_used_up" for name in ("rivers", "hills", "seas")]


def test_goals_are_not_repeated_and_the_table_has_them(program: Program) -> None:
    for _ in range(2):
        assert raised(SystemExit, program, "many_goals").code == 1
    said = program("table_of_runs").splitlines()
    assert (len(said), said[6].partition(",")[0]) == (10, "run")


def test_check_of_ones_own_fails_the_step(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[2].joinpath("docs/how-to/python-programs.md").read_text()
    point = page.partition('[project.entry-points."codex_multi_role.checks"]\n')[2].partition("\n```")[0]
    distribution(tmp_path / "installed", "todo-check", "codex_multi_role.checks", [point.replace('"', "")])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "installed")
    said = program("todo_check").splitlines()
    assert said[0].startswith("0 success")
    assert said[1] == "1 no_todo_failed step no_todo: check no_todo: unfinished"


def test_web_application_starts_looks_and_cancels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web_application.py").write_text(PROGRAMS["web_application"])
    found = runpy.run_path(str(tmp_path / "web_application.py"))
    with TestClient(found["application"]) as client:
        assert client.get("/runs/x").status_code == 404
        one, two = (client.post("/runs?goal=Haiku").json()["id"] for _ in range(2))
        assert client.post(f"/runs/{one}/cancel").json()["status"] in ("interrupted", "ended")
        wait_for(tmp_path / "runs" / two / "report.html")
        assert client.get(f"/runs/{two}").json()["status"] == "ended"
    assert all(each.status != "running" for each in runs())


def test_programs_pass_pyright_in_strict_mode(tmp_path: Path) -> None:
    """Mypy checks them with the Python of all other pages."""
    for name, text in PROGRAMS.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    command = [sys.executable, "-m", "basedpyright", "--project", str(tmp_path), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines()[-1] == "0 errors, 0 warnings, 0 notes", done.stdout
