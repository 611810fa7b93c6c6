"""``watch``: a run from another process, while it works and after."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.main import group
from codex_multi_role.cli.watch import watch_all
from codex_multi_role.run_folder import Owner, Question, Questions, RunEvent, RunFolder
from tests.support.console import DEADLINE_SECONDS, at_terminal, console, environment, line, on_terminal, reading
from tests.support.recorded_runs import make_run, whole_run
from tests.support.teams import TeamFolder, say
from tests.support.tools import EDITOR

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

CODES = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")
FOR_PEOPLE = "--all excludes --json and --quiet"
WATCH = [sys.executable, "-m", "codex_multi_role", "watch"]


@contextmanager
def worked_on(folder: RunFolder) -> Iterator[None]:
    """This process is the one that works on the run."""
    owner = Owner(folder.owner_path)
    owner.acquire()
    try:
        yield
    finally:
        owner.release()


@contextmanager
def watching(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen([*WATCH, *arguments], cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True)
    with started as child, reading(child):
        yield child


def append(folder: RunFolder, text: str) -> None:
    with folder.events_path.open("a") as file:
        file.write(text)


def lines(events: list[RunEvent]) -> list[str]:
    return [json.dumps(event.as_record()) + "\n" for event in events]


@pytest.mark.parametrize("pager", ["", "sh deaf.sh"])
def test_ctrl_c_ends_the_pager_at_once(tmp_path: Path, pager: str) -> None:
    """Also one that pays no attention to it."""
    (tmp_path / "deaf.sh").write_text("trap '' INT TERM\ncat\nexec sleep 600")
    made = say(status="DONE", files=[{"path": "new.py", "content": "made = 1\n"}])
    team = TeamFolder(tmp_path, {"one": EDITOR}, {"one": [made]})
    team.run()
    with worked_on(RunFolder((team.runs / "latest").resolve())), at_terminal(WATCH, tmp_path, PAGER=pager) as terminal:
        terminal.wait_for("? keys")
        terminal.type("d")
        terminal.wait_for("+made = 1")
        terminal.type("\x03")
        assert terminal.end() == 130
        assert termios.tcgetattr(terminal.descriptor)[3] & termios.ICANON


def test_events_are_shown_as_they_arrive_in_whole_lines(tmp_path: Path) -> None:
    """A half-written line is shown once it is complete, one of another version as it is."""
    folder = make_run(tmp_path / "runs", "first")
    strange = ['{"type": "not_invented_yet", "new": [1]}\n', '{"type": "turn_ended", "at": "yesterday"}\n']
    first, second, *rest = [*lines(whole_run()), *strange]
    folder.events_path.write_text(first + second[:20])
    with watching(tmp_path, "first", "--json") as child:
        with worked_on(folder):
            assert line(child.stdout) == first
            append(folder, second[20:])
            assert line(child.stdout) == second
            append(folder, "".join(rest))
        assert [line(child.stdout) for _ in rest] == rest
        assert child.wait(DEADLINE_SECONDS) == 1  # as the run ended


def test_watching_ends_when_nobody_reads_it(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    first, second, *_ = lines(whole_run())
    folder.events_path.write_text(first)
    with worked_on(folder), watching(tmp_path, "first", "--json") as child:
        assert line(child.stdout) == first
        assert child.stdout is not None
        child.stdout.close()
        append(folder, second)
        assert child.wait(DEADLINE_SECONDS) == 141


@pytest.mark.sample("run", "watch")
def test_real_run_is_watched_to_its_end(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {"behaviors": {"can_finish": True}}}, {"one": [say(status="DONE")]})
    report = team.run()
    done = console("watch", "--runs-dir", str(report.folder.parent), folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "one: turn 1 completed" in done.stderr
    assert "exit     0: goal reached" in done.stderr


def test_killed_run_is_reported_and_is_not_a_success(tmp_path: Path) -> None:
    """A killed run has no recorded end, and `watch` exits with code 3."""
    folder = make_run(tmp_path / "runs", "first", status="running", exit_code=None)
    folder.owner_path.write_text('{"pid": 1, "start_time": 1.5}')
    done = console("watch", "first", folder=tmp_path)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-2:] == [
        "The run was killed. It is not running, and its end was not recorded.",
        "  next     codex-multi-role resume first",
    ]


def test_all_runs_at_once_until_none_is_worked_on(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first", status="ended")
    live = make_run(tmp_path / "runs", "second", status="running", outcome="", exit_code=None)
    live.events_path.write_text("".join(lines(whole_run()[:8])))
    with watching(tmp_path, "--all") as child:
        with worked_on(live):
            told = [line(child.stdout), line(child.stdout)]
            assert told == ["first  cycles  ended  All cycles are used up\n", "second  cycles  running  cycle 1 of 3\n"]
            append(
                live,
                json.dumps({"type": "review_asked", "at": whole_run()[-1].at, "key": "ok.1", "question": "?"}) + "\n",
            )
            assert line(child.stdout) == "second  cycles  running  cycle 1 of 3  asks ok.1\n"
        assert line(child.stdout) == "second  cycles  killed\n"
        assert child.wait(DEADLINE_SECONDS) == 0
    drawn, _, code = on_terminal([*WATCH, "--all"], tmp_path)
    assert ("killed" in drawn, code) == (True, 0)


def test_person_answers_the_questions_of_all_runs_and_quits(tmp_path: Path) -> None:
    parked = {"status": "parked", "outcome": "waiting_for_review", "exit_code": 4}
    runs = [make_run(tmp_path / "runs", name, started_at=f"2026-01-3{at}", **parked) for at, name in enumerate("ab")]
    for run in runs:
        Questions(run.path).ask(Question("ok.1", "Ship it?", "", "2026-01-31T10:15:00+00:00", None, None))
    with at_terminal([*WATCH, "--all"], tmp_path) as terminal:
        terminal.wait_for("a answer  q quit  ? keys")
        terminal.type("a")
        terminal.wait_for("run a: Ship it?")
        terminal.wait_for("Ctrl-D leaves the question open.")
        terminal.type("\x04")
        terminal.wait_for("q quit")
        terminal.type("a")
        terminal.wait_for("run b: Ship it?")
        terminal.wait_for("Ctrl-D leaves the question open.")
        terminal.type("y good\n")
        terminal.wait_for("next: codex-multi-role resume b")
        terminal.wait_for("q quit")
        terminal.type("q")
        assert terminal.end() == 0
    (answered,) = Questions(runs[1].path).answered()
    assert (answered.answer is not None and answered.answer.comment, Questions(runs[0].path).answered()) == ("good", [])


@pytest.mark.parametrize(
    ("also", "told"), [("latest", "RUN and --all exclude each other"), ("--json", FOR_PEOPLE), ("--quiet", FOR_PEOPLE)]
)
def test_all_runs_exclude_one_run_and_machines(also: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(group, ["watch", "--all", also]) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"error: {told}"


def test_empty_run_list_is_reported_on_a_terminal(tmp_path: Path) -> None:
    drawn, _, code = on_terminal([*WATCH, "--all"], tmp_path)
    assert (drawn.splitlines(), code) == (["There are no runs in runs."], 0)


def test_run_that_cannot_be_read_has_no_flow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RunFolder.create(tmp_path, "broken").record_path.write_text("{")
    watch_all(tmp_path, None, plain=True)
    assert capsys.readouterr().out.split() == ["broken", "unreadable"]
