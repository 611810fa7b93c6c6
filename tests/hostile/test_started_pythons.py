"""Folders and variables in which a model, or a stranger, waits for a Python of ours to start.

Costs: each set of variables is tried on Pythons and pytest that really start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest

import codex_multi_role
from codex_multi_role.errors import UsageError
from codex_multi_role.host import own_python, programs
from codex_multi_role.host.own_python import Lifetime, own_environment, own_module, start
from tests.support.console import environment
from tests.support.workspaces import write_files

pytestmark = pytest.mark.real

SECONDS = 60.0
SITE = sysconfig.get_path("purelib", "posix_user", {"userbase": "base"})
FILES = {
    "queue": "queue.py",
    "evil": "evil.py",
    "json": "json.py",
    "sqlite3": "sqlite3.py",
    "subprocess": "subprocess.py",
    "runpy": "runpy.py",
    "site": "site.py",
    "encodings": "encodings/__init__.py",
    "click": "click/__init__.py",
    "yaml": "yaml.py",
    "sitecustomize": "sitecustomize.py",
    "usercustomize": "usercustomize.py",
    "own-package": "codex_multi_role/__init__.py",
    "own-module": "codex_multi_role.py",
    "own-main": "codex_multi_role/__main__.py",
    "venv-site": f".venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/sitecustomize.py",
    "user-site": f"{SITE}/usercustomize.py",
    "startup": "startup.py",
}
OTHER_FILES = {
    "pth": ("evil.pth", "import os; open({marker!r}, 'w')\n"),
    "user-pth": (f"{SITE}/evil.pth", "import os; open({marker!r}, 'w')\n"),
    "pyvenv": ("pyvenv.cfg", "home = {folder}\n"),
    "coverage": (".coveragerc", "[run]\nplugins = queue\n"),
}
VARIABLES = {
    "none": {},
    "that name places": {
        "PYTHONPATH": "::/nowhere:.:src:../work:{folder}:{folder}/src/..:{folder}-link:{folder}//:",
        "PYTHONHOME": "{folder}:.",
        "PYTHONUSERBASE": "{folder}/base",
        "PYTHONPYCACHEPREFIX": "{folder}/cache",
        "PYTHONPLATLIBDIR": "{folder}",
        "PYTHONEXECUTABLE": "{folder}/python",
        "COVERAGE_PROCESS_START": "{folder}/.coveragerc",
        "VIRTUAL_ENV": "{folder}/.venv",
        "LD_PRELOAD": "./evil.so",
        "LD_LIBRARY_PATH": ".:/nowhere",
    },
    "that name modules": {
        "PYTHONPATH": ".",
        "PYTHONSAFEPATH": "",
        "PYTHONSTARTUP": "{folder}/startup.py",
        "PYTHONINSPECT": "1",
        "PYTHONBREAKPOINT": "queue.Queue",
        "PYTHONWARNINGS": "error::evil.Warning",
    },
}


def ascii_id(text: str) -> str:
    return ascii(text[:9])


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """The file that exists once any of the hostile files was executed."""
    return tmp_path / "executed"


@pytest.fixture
def work(tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with all hostile files, in which the process starts."""
    folder = tmp_path / "work"
    texts = {name: f"open({str(marker)!r}, 'w')\nraise SystemExit('executed')\n" for name in FILES.values()}
    texts |= {name: text.format(marker=str(marker), folder=folder) for name, text in OTHER_FILES.values()}
    write_files(folder, texts)
    (tmp_path / "work-link").symlink_to(folder)
    monkeypatch.setattr(programs, "_excluded", {folder})
    monkeypatch.chdir(folder)
    return folder


def _given(variables: Mapping[str, str], folder: Path) -> dict[str, str]:
    return environment(**{name: value.format(folder=folder) for name, value in variables.items()})


@pytest.mark.parametrize("variables", VARIABLES.values(), ids=VARIABLES)
def test_no_file_of_a_workspace_is_executed(
    variables: Mapping[str, str], work: Path, marker: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    command = own_module("codex_multi_role", "flows", "list")
    process = start(command, Lifetime.OUTLIVES_US, log=log, environment=_given(variables, work))
    assert process.wait(SECONDS) == 0, log.read_text()
    assert not marker.exists()
    assert "Traceback" not in log.read_text()


def test_no_file_of_a_home_in_a_workspace_is_executed(
    work: Path, marker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as in a container whose only folder is both. A virtual environment never looks there, other Pythons do."""
    home = Path(sysconfig.get_path("purelib", "posix_user", {"userbase": str(work / ".local")}))
    home.mkdir(parents=True)
    for name in ("usercustomize.py", "evil.pth"):
        (home / name).write_text(f"import os; open({str(marker)!r}, 'w')\n")
    monkeypatch.setattr(own_python, "OWN_PYTHON", getattr(sys, "_base_executable", sys.executable))
    monkeypatch.setenv("HOME", str(work))
    places = [str(Path(module.__file__).parents[1]) for module in (pytest, codex_multi_role) if module.__file__]
    variables = environment(PYTHONPATH=os.pathsep.join(places))
    log = tmp_path / "log"
    command = own_module("codex_multi_role", "--version")
    assert start(command, Lifetime.OUTLIVES_US, log=log, environment=variables).wait(SECONDS) == 0, log.read_text()
    assert not marker.exists()


def test_entries_outside_of_workspaces_are_kept(work: Path) -> None:
    kept = own_environment({"PYTHONPATH": f"/opt/ours:{work}:.:/opt/more", "PYTHONHOME": "/usr", "PYTHONUTF8": "1"})
    assert kept == {"PYTHONPATH": "/opt/ours:/opt/more", "PYTHONHOME": "/usr", "PYTHONUTF8": "1"}


@pytest.mark.usefixtures("work")
def test_python_that_is_not_ours_executes_the_files(marker: Path) -> None:
    """The files of this test do what is tried with them."""
    ran = subprocess.run([sys.executable, "-c", "import queue"], capture_output=True, timeout=SECONDS, check=False)
    assert marker.exists(), ran.stderr


@pytest.mark.parametrize("order", ["\ud800", "a\0b", "line\nbreak\r\n", "\u202e", "x" * 1_000_000], ids=ascii_id)
def test_order_of_any_text_arrives_without_waiting(order: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    copies = [sys.executable, "-c", "import sys; sys.stderr.buffer.write(sys.stdin.buffer.read())"]
    assert start(copies, Lifetime.OUTLIVES_US, order, log).wait(SECONDS) == 0
    assert log.read_bytes() == order.encode("utf-8", "replace")


@pytest.mark.extensions
@pytest.mark.parametrize("value", ["a\0b", "\ud800", "x" * 200_000], ids=["nul", "surrogate", "long"])
def test_value_that_no_process_can_get_is_wrong_usage(value: str, tmp_path: Path) -> None:
    from codex_multi_role.extensions.pages.serve.starting import NewRun, RunStarter

    starter = RunStarter(tmp_path / "runs", None, lambda: True)
    with pytest.raises(UsageError, match="the values cannot be passed to a process: "):
        starter.start(NewRun("cycles", "goal", {"playbook": value}))
    assert [*(tmp_path / "runs/.starting").iterdir()] == []


@pytest.mark.extensions
def test_run_process_of_a_worker_executes_nothing_of_its_folder(
    work: Path, marker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what is wrong with its order instead."""
    from codex_multi_role.extensions.machines.workers.worker import RunChild

    monkeypatch.setenv("PYTHONPATH", ".")
    order = {"queue": "goals", "database_url": f"sqlite:///{tmp_path}/missing/queue.sqlite", "store": str(tmp_path)}
    child = RunChild(order, tmp_path / "worker.log")
    while child.exit_code is None:
        child.follow(child.lines())
    child.close()
    said = (tmp_path / "worker.log").read_text()
    assert not marker.exists(), said
    assert "error: " in said


def test_command_imports_nothing_from_the_folder_it_starts_in(work: Path, marker: Path) -> None:
    """``python -m`` puts that folder first, unlike the installed command. Only a package of our name precedes us."""
    for name in (FILES["own-package"], FILES["own-module"], FILES["own-main"], FILES["runpy"], FILES["site"]):
        (work / name).unlink()
    (work / "codex_multi_role").rmdir()
    command = [sys.executable, "-m", "codex_multi_role", "run", "--goal", "g", "--dry-run"]
    ran = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=SECONDS, check=False)
    assert not marker.exists(), ran.stderr
    assert "Traceback" not in ran.stderr
