"""``bisect`` as a user gives it: what it executes and where, what it says, and that it leaves nothing behind."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.support.console import DEADLINE_SECONDS, Completed, console, environment, reading
from tests.support.histories import History
from tests.support.preloaded import started
from tests.support.recorded_runs import make_run
from tests.support.teams import WRITER, TeamFolder, say
from tests.support.workspaces import everything

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

KEY = "write.1.0"
QUICK = ("--no-test-sandbox", "--repeat", "1")


def bisect(folder: Path, script: str, *options: str, **variables: str) -> Completed:
    """Search for the turn by a shell script."""
    return console("bisect", *options, "--", "sh", "-c", script, folder=folder, variables=variables)


def last_line(done: Completed) -> str:
    return done.stdout.splitlines()[-1]


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Ten changes: number N writes N to ``a.txt``; the fourth was made between turns. The run was killed."""
    made = History(tmp_path, {"a.txt": "0\n"})
    for number in range(1, 11):
        if number == 4:
            made.between({"a.txt": "4\n"})
        else:
            made.turn("writer" if number % 2 else "tester", {"a.txt": f"{number}\n"})
    return made


def test_last_line_names_the_turn_and_nothing_is_left(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    before = everything(tmp_path)
    limit = "test $(cat a.txt) -lt 7 || { echo too much; exit 3; }"
    done = bisect(tmp_path, limit, "--no-test-sandbox", "--repeat", "2")
    assert done.stdout.splitlines() == [
        "5 executions, 2 more to confirm",
        "run first: writer turn 4 first made it fail",
    ]
    assert done.returncode == 0
    said = done.stderr.splitlines()
    assert [line.partition(" in ")[0] for line in said[:2]] == [
        "tester turn 4: fails (exit code 3)",
        "writer turn 3: passes",
    ]
    assert said[-2:] == ["writer turn 4, end of the output:", "  too much"]
    assert everything(tmp_path) == before
    assert history.workspace.is_dir()


@pytest.mark.usefixtures("history")
def test_each_execution_is_alone_in_the_sandbox(tmp_path: Path) -> None:
    """In a fresh folder of the same name, without secrets, and it can write nowhere else."""
    outside = tmp_path / "outside"
    script = f"test ! -e here && touch here && test -z $API_KEY && test ${{PWD##*/}} = workspace && ! touch {outside}"
    done = bisect(tmp_path, script, "--repeat", "2", API_KEY="1234567890")
    assert last_line(done).endswith("because the command passes before the first change and at the end")
    assert done.returncode == 1
    assert not outside.exists()


@pytest.mark.usefixtures("history")
def test_change_between_turns_is_found_as_json(tmp_path: Path) -> None:
    done = bisect(tmp_path, "test $(cat a.txt) -ge 4", *QUICK, "--json")
    assert done.returncode == 0
    change = {"role": "", "turn": 0, "unit": "team"}
    assert json.loads(done.stdout) == {
        "run": "first",
        **change,
        "became": "pass",
        "executions": 4,
        "confirmations": 0,
        "flaky": False,
        "candidates": [change],
    }
    named = last_line(bisect(tmp_path, "test $(cat a.txt) -ge 4", *QUICK))
    assert named == "run first: a change between turns (after writer turn 2) first made it pass"


@pytest.mark.usefixtures("history")
def test_states_that_cannot_be_judged_leave_candidates(tmp_path: Path) -> None:
    script = "case $(cat a.txt) in 5|6) exit 125;; 0|1|2|3|4) exit 1;; esac"
    done = bisect(tmp_path, script, *QUICK)
    assert done.returncode == 1
    named = "run first: one of these first made it pass: writer turn 3, tester turn 2, writer turn 4"
    assert last_line(done) == named
    assert "tester turn 2: cannot be judged (exit code 125)" in done.stderr
    candidates = json.loads(bisect(tmp_path, script, *QUICK, "--json").stdout)["candidates"]
    assert [(each["role"], each["turn"]) for each in candidates] == [("writer", 3), ("tester", 2), ("writer", 4)]
    last = bisect(tmp_path, "exit 125", *QUICK)
    assert (last.returncode, last_line(last)) == (
        1,
        "run first: no turn found, because the last state cannot be judged",
    )


@pytest.mark.long
@pytest.mark.usefixtures("history")
def test_flaky_command_is_reported_and_found(tmp_path: Path) -> None:
    """Every ninth result is wrong, that of the third execution first."""
    count = tmp_path / "count"
    script = (
        f"n=$(cat {count} || echo 6); echo $((n + 1)) > {count}; "
        "test $(cat a.txt) -lt 8; right=$?; if [ $((n % 9)) = 8 ]; then exit $((1 - right)); else exit $right; fi"
    )
    done = bisect(tmp_path, script, "--no-test-sandbox")
    assert "more because the results vary: the command is flaky" in done.stdout
    assert last_line(done) == "run first: tester turn 3 first made it fail"
    assert done.returncode == 0


@pytest.mark.long
def test_time_limit_is_a_failure(tmp_path: Path) -> None:
    History(tmp_path, {}).turn("writer", {"slow.txt": ""})
    done = bisect(tmp_path, "test ! -e slow.txt || sleep 60", *QUICK, "--seconds", "1")
    assert "writer turn 1: fails (timed out)" in done.stderr
    assert last_line(done) == "run first: writer turn 1 first made it fail"


def test_turn_in_a_copy_is_named(tmp_path: Path) -> None:
    history = History(tmp_path, {"a.txt": "1\n"})
    history.copied(KEY)
    for number in (2, 3, 4):
        history.turn("writer", {"a.txt": f"{number}\n"}, KEY)
    history.turn("other", {"b.txt": ""})
    history.merged(KEY)
    done = bisect(tmp_path, "test $(cat a.txt) -lt 3 || ! test -e b.txt", *QUICK, "--json")
    found = json.loads(done.stdout)
    assert (found["role"], found["turn"], found["unit"]) == ("writer", 2, KEY)


@pytest.mark.usefixtures("history")
def test_terminated_search_leaves_nothing(tmp_path: Path) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    script = f"touch {tmp_path}/running; sleep 60"
    argv = [sys.executable, "-m", "codex_multi_role", "bisect", *QUICK, "--", "sh", "-c", script]
    child = started(argv, cwd=tmp_path, env={**environment(), "TMPDIR": str(temporary)}, stderr=subprocess.PIPE)
    with reading(child):
        while not (tmp_path / "running").exists() and child.poll() is None:
            time.sleep(0.02)
        child.terminate()
        _, errors = child.communicate(timeout=DEADLINE_SECONDS)
    assert (child.returncode, errors) == (130, "error: interrupted\n")
    assert not list(temporary.iterdir())


@pytest.mark.usefixtures("history")
def test_wrong_usage_is_refused(tmp_path: Path) -> None:
    for arguments, message in (
        ([], "missing COMMAND"),
        (["--"], "missing COMMAND"),
        (["true"], "missing COMMAND"),
        (["nowhere", "--", "true"], "nowhere"),
        (["first", "true", "--", "true"], "unexpected extra argument (true)"),
        (["--", "no-such-program", "-q"], "program not found: no-such-program"),
        (["--repeat", "0", "--", "true"], "--repeat"),
    ):
        done = console("bisect", *arguments, folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr


def test_run_without_changes_has_no_turn_to_find(tmp_path: Path) -> None:
    History(tmp_path, {}).ended()
    assert "run first changed no files" in bisect(tmp_path, "true").stderr
    make_run(tmp_path / "runs", "second")
    assert "run second recorded no state" in bisect(tmp_path, "true", "second").stderr


def test_restored_files_are_imported_despite_an_editable_install(tmp_path: Path) -> None:
    """As by ``pip install -e``, in an environment that no snapshot has."""
    history = History(tmp_path, {"src/lib.py": "value = 0\n"})
    own = history.workspace / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", own], check=True)
    packages = next(own.glob("lib/python*/site-packages"))
    (packages / "own.pth").write_text(f"{history.workspace}/src\n")
    for number in (1, 2, 3):
        history.turn("writer", {"src/lib.py": f"value = {number}\n"})
    check = "import lib, sys; assert '.venv' in sys.prefix; sys.exit(lib.value >= 2)"
    done = bisect(tmp_path, f"python -c {shlex.quote(check)}", "--repeat", "1")
    assert last_line(done) == "run first: writer turn 2 first made it fail"


@pytest.mark.sample("bisect")
def test_states_of_a_team_are_prepared_as_its_worktrees(tmp_path: Path) -> None:
    """On the real binary, with files that the run's isolated copies would get, and a setup."""
    plays = [say(files=[{"path": "a.txt", "content": content}]) for content in ("one\n", "two\n", "three\n")]
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": plays})
    (team.workspace / ".gitignore").write_text(".env\nmade\n")
    (team.workspace / ".env").write_text("KEY=1\n")
    team.run(cycles=3, workspace_copy=(".env", "no.cfg"), workspace_setup="cat .env > made; test ! -e failing")
    done = bisect(tmp_path, "grep -q KEY made && grep -q KEY .env && ! grep -q t a.txt", "--repeat", "1")
    assert last_line(done).endswith(": one turn 2 first made it fail"), done.stderr
    assert done.stderr.count(f"warning: workspace.copy: no.cfg is not in {team.workspace}\n") == 1
    assert done.returncode == 0


@pytest.mark.long
def test_state_whose_setup_fails_cannot_be_judged(tmp_path: Path) -> None:
    plays = [say(files=[{"path": "a.txt", "content": content}]) for content in ("one\n", "two\n", "three\n")]
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": plays})
    team.run(cycles=3, workspace_setup="! grep two a.txt")
    done = bisect(tmp_path, "! grep -q three a.txt", *QUICK)
    assert "one turn 2: cannot be judged (the setup `! grep two a.txt` failed with exit code 1" in done.stderr
    assert last_line(done).endswith("one of these first made it fail: one turn 2, one turn 3")
