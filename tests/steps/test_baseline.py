"""Tests are judged against the state before the first turn: old failures do not count, new ones do.

Costs: real suites run before and after changes.
"""

from __future__ import annotations

import re
import shlex
import signal
from pathlib import Path

import pytest

from codex_multi_role import UsageError, fork
from codex_multi_role.cli.live import picture
from codex_multi_role.errors import StorageError
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.plain import PlainLines
from codex_multi_role.presentation.wording import duration
from codex_multi_role.run_folder import read_events
from codex_multi_role.run_folder.events import BaselineStarted
from codex_multi_role.steps.baseline import Baseline
from tests.support.console import console
from tests.support.processes import interrupted
from tests.support.teams import Record, TeamFolder, read, say, warnings, with_flow
from tests.support.tests_here import real_pytest, tests_here

__all__ = ["real_pytest", "tests_here"]

pytestmark = [pytest.mark.usefixtures("scripted_codex", "tests_here"), pytest.mark.real]

BOTH: Record = {"behaviors": {"apply_files": True, "can_finish": True}}
OLD = "def test_old():\n    assert False\n"
GREEN = "from code_of import one\n\n\ndef test_one():\n    assert one() == 1\n"
RIGHT, WRONG = "def one():\n    return 1 + 0\n", "def one():\n    return 2\n"
CODE, TESTS, RED = "code_of.py", "test_green.py", "test_red.py"
MUTED = f"import pytest\n{GREEN}".replace("def test_one", "@pytest.mark.skip\ndef test_one")


def team_that(folder: Path, *turns: Record) -> TeamFolder:
    """One role that writes, and says DONE each time, in a project with a red and a green test."""
    team = TeamFolder(folder, {"one": BOTH}, {"one": [*turns]})
    for name, text in {CODE: "def one():\n    return 1\n", TESTS: GREEN, RED: OLD}.items():
        (team.workspace / name).write_text(text)
    return team


def writes(status: str = "DONE", **files: str) -> Record:
    names = {"code": CODE, "tests": TESTS, "red": RED}
    return say(status=status, files=[{"path": names[name], "content": text} for name, text in files.items()])


def result(team: TeamFolder, number: int = 1) -> Record:
    found: Record = read(team.runs / f"latest/tests/{number:03d}/result.json")
    return found


CASES: dict[str, tuple[Record, int, Record]] = {
    "right": (writes(code=RIGHT), 0, {"still_failing_tests": ["test_red.py::test_old"]}),
    "wrong": (writes(code=WRONG), 1, {"new_failures_tests": ["test_green.py::test_one"]}),
    "green test muted": (writes(tests=MUTED), 1, {"new_failures_tests": ["test_green.py::test_one"]}),
}
"""More changes to more suites are in `test_untidy_suites`."""


@pytest.mark.usefixtures("real_pytest")
@pytest.mark.parametrize("name", CASES)
def test_done_counts_unless_a_failure_is_new(tmp_path: Path, name: str) -> None:
    turn, exit_code, told = CASES[name]
    team = team_that(tmp_path, turn)
    report = team.run(run_tests=True)
    assert (report.exit_code, report.outcome) == (exit_code, "tests_failed" if exit_code else "done"), report
    (measured,) = team.of_type("baseline_measured")
    assert (measured["passed"], measured["failed"], measured["problem"]) == (1, 1, "")
    assert result(team)["verdict"] == ("failed" if exit_code else "passed")
    assert told.items() <= result(team).items()


@pytest.mark.extensions
def test_refused_done_continues_with_the_reason(tmp_path: Path) -> None:
    """The event names the new failure first, although a result only has the first twenty of all."""
    team = team_that(tmp_path, writes(code=WRONG), writes(code=RIGHT))
    many = "".join(f"def test_{number}():\n    assert False\n" for number in range(30))
    (team.workspace / "test_earlier.py").write_text(many)
    report = team.run(run_tests=True, cycles=3)
    assert (report.exit_code, report.outcome) == (0, "done"), report
    assert len(team.turns()) == 2
    prompt = (team.runs / "latest/one/turn_002/prompt.txt").read_text()
    assert "one said DONE, which does not count: the tests have new failures" in prompt
    (refused,) = team.of_type("done_ignored")
    assert (refused["role"], refused["turn"]) == ("one", 1)
    assert refused["reason"] == "failed: new failures: test_green.py::test_one"
    failures = [each["failures"] for each in team.of_type("tests_ended")]
    old = [f"test_earlier.py::test_{number}" for number in range(5)]
    assert failures == [["test_green.py::test_one", *old[:4]], old]
    shown = console("show", folder=tmp_path).stdout
    assert "fine, said DONE, which does not count: failed: new failures: test_green.py::test_one" in shown, shown
    assert "said DONE, which does not count" in (report.folder / "report.html").read_text()


def test_refused_done_in_the_last_cycle_suggests_more_of_them(tmp_path: Path) -> None:
    """They help: the run continues with the reason."""
    team = team_that(tmp_path, writes(code=WRONG), writes(code=RIGHT))
    report = team.run(run_tests=True, cycles=1)
    assert (report.outcome, read(report.folder / "run.json")["suggestion"]) == (
        "tests_failed",
        "resume RUN --cycles 4",
    )
    assert team.of_type("done_ignored") == []
    assert team.resume(cycles=4).outcome == "done"
    assert [turn for _, turn, _ in team.turns()] == [2]
    assert len(team.of_type("done_ignored")) == 1


def test_done_without_a_way_back_ends_the_run_at_once(tmp_path: Path) -> None:
    team = team_that(tmp_path, writes(code=WRONG), say())
    with_flow(team, {"steps": [{"ask": "one"}, {"id": "later", "ask": "one"}]})
    report = team.run(flow="own", run_tests=True, cycles=3)
    assert (report.exit_code, report.outcome) == (1, "tests_failed")
    assert len(team.turns()) == 1


def test_prompt_names_what_is_new_and_nothing_that_is_empty(tmp_path: Path) -> None:
    many = "".join(f"def test_{number}():\n    assert False\n" for number in range(30))
    team = team_that(tmp_path, writes("CONTINUE", tests=many), writes(code=RIGHT, tests=GREEN))
    team.run(run_tests=True, cycles=2)
    prompt = (team.runs / "latest/one/turn_002/prompt.txt").read_text()
    assert '"new_failures": 30' in prompt
    assert '"and 10 more"' in prompt
    assert "dropped_tests" not in prompt


def test_without_a_baseline_every_failure_counts(tmp_path: Path) -> None:
    team = team_that(tmp_path, writes(code=RIGHT))
    report = team.run(run_tests=True, baseline=False)
    assert (report.exit_code, report.outcome) == (1, "tests_failed")
    assert result(team)["without_baseline"] == "the tests did not run before the first change"
    assert result(team)["new_failures_tests"] == ["test_red.py::test_old"]
    why = (
        "new failures: test_red.py::test_old; every failure counted as new: "
        "the tests did not run before the first change"
    )
    assert why in report.reason


def test_check_of_a_flow_is_judged_in_the_same_way(tmp_path: Path) -> None:
    team = team_that(tmp_path, writes("CONTINUE", code=RIGHT))
    with_flow(team, {"steps": [{"ask": "one"}, {"id": "test", "check": "tests"}]})
    assert team.run(flow="own").exit_code == 0
    assert result(team)["still_failing"] == 1


def test_resumed_run_keeps_what_was_measured_before(tmp_path: Path) -> None:
    team = team_that(tmp_path, writes("CONTINUE", code=RIGHT), writes(code=f"{RIGHT}\n"))
    assert team.run(run_tests=True, cycles=2, max_turns=1).exit_code == 5
    assert team.resume(max_turns=None).exit_code == 0
    assert team.of_type("baseline_measured") == []
    assert result(team, 2)["still_failing"] == 1


def test_result_that_a_kill_cut_short_is_measured_again(tmp_path: Path) -> None:
    folder = tmp_path / "baseline"
    folder.mkdir()
    (folder / "result.json").write_text('{"status": "pas')
    assert not Baseline(folder).is_measured
    assert Baseline(folder).problem == "the tests did not run before the first change"


def test_role_that_changes_nothing_costs_no_test_run(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {"behaviors": {"can_finish": True}}}, {"one": [say(status="DONE")]})
    (team.workspace / "test_red.py").write_text(OLD)
    assert team.run(run_tests=True).exit_code == 0
    assert team.of_type("baseline_measured") == []


def test_change_that_only_a_command_made_is_tested_at_the_end(tmp_path: Path) -> None:
    """The role may change files, and does not."""
    team = team_that(tmp_path, say())
    program = f"open('{CODE}', 'w').write({WRONG!r})"
    command = {"check": "command", "with": {"argv": ["python3", "-c", program], "json": False}}
    with_flow(team, {"steps": [{"ask": "one"}, command]})
    report = team.run(flow="own", run_tests=True)
    assert (report.exit_code, report.outcome) == (1, "tests_failed")
    assert "new failures: test_green.py::test_one" in report.reason


@pytest.mark.usefixtures("real_pytest")
def test_check_that_could_not_run_and_may_fail_is_not_repeated_at_the_end(tmp_path: Path) -> None:
    """`allow` of the last `check: tests` decides; the same files are not tested again beside it."""
    team = team_that(tmp_path, writes("CONTINUE", code=RIGHT))
    (team.workspace / "conftest.py").write_text("raise OSError\n")
    with_flow(team, {"steps": [{"ask": "one"}, {"check": "tests", "allow": ["bad", "failed"]}]})
    report = team.run(flow="own", run_tests=True)
    assert (report.exit_code, report.outcome) == (0, "success"), report
    assert [each["number"] for each in team.of_type("tests_started")] == [1, 2]


@pytest.mark.extensions
def test_old_failures_name_the_run_that_left_them(tmp_path: Path) -> None:
    """Not the one that has always failed, and not those of another workspace."""
    team = team_that(tmp_path, writes(code=WRONG))
    first = team.run(run_tests=True)
    assert first.exit_code == 1
    report = team.run(run_tests=True)
    (measured,) = team.of_type("baseline_measured")
    assert (measured["failed"], measured["left_by"]) == (2, {first.run_id: 1})
    page = (report.folder / "report.html").read_text()
    assert f"failed: 2 failed (1 left by run {first.run_id})" in page
    told = f"tests before the first change: failed: 2 failed (1 left by run {first.run_id})"
    assert told in live(report.folder, "baseline_measured")
    elsewhere = team_that(tmp_path / "elsewhere", writes(code=WRONG))
    elsewhere.run(run_tests=True, runs_dir=team.runs)
    assert elsewhere.of_type("baseline_measured")[0]["left_by"] == {}


SLOW = """\
import time
from pathlib import Path

EVENTS = Path(__file__).parents[1] / "runs/latest/events.jsonl"


def test_slow():
    Path("left.txt").write_text("by the tests")
    end = time.monotonic() + 60
    while not all(text in EVENTS.read_text() for text in {texts}):
        assert time.monotonic() < end
        time.sleep(0.05)
"""
PLANNED = ('"turn_ended"', '"role": "one", "pid"')
"""What the events say once the first turn has ended, and the process of the role ``one`` has started."""


def planned(folder: Path, first: Record, until: tuple[str, ...] = PLANNED) -> TeamFolder:
    """Before the role that writes comes ``first``, in a project whose tests run until the events have these texts."""
    plans = {"behaviors": {"timeout_policy": "planner"}}
    team = TeamFolder(folder, {"planner": plans, "one": BOTH}, {"planner": [say()], "one": [writes(code=RIGHT)]})
    for name, text in {CODE: "def one():\n    return 1\n", "test_slow.py": SLOW.format(texts=until)}.items():
        (team.workspace / name).write_text(text)
    return with_flow(team, {"steps": [first, {"ask": "one"}]})


def order(team: TeamFolder, *types: str) -> list[str]:
    """The events of these types, by type and role."""
    told = [event for event in team.events if event["type"] in types]
    return [f"{event['type']} {event.get('role', '')}".strip() for event in told]


@pytest.mark.usefixtures("real_pytest")
def test_role_that_only_reads_is_asked_while_the_tests_run(tmp_path: Path) -> None:
    """Whoever writes has a running process by then, and comes after them. What they leave is in no state meanwhile."""
    team = planned(tmp_path, {"ask": "planner"})
    report = team.run(flow="own", run_tests=True)
    assert (report.exit_code, result(team)["verdict"]) == (0, "passed"), report
    first, second = team.of_type("step_started")
    assert first["workspace"] == second["workspace"]
    moments = order(team, "baseline_started", "baseline_measured", "turn_started")
    assert moments[-2:] == ["baseline_measured", "turn_started one"]
    assert sorted(moments[:2]) == ["baseline_started", "turn_started planner"]
    shown = live(report.folder, "baseline_started")
    assert "waiting for the tests before the first change: 0.0 s; skip: --no-baseline" in shown
    assert team.run(flow="own", run_tests=True).exit_code == 0
    (started,) = team.of_type("baseline_started")
    assert started["last_seconds"] == read(report.folder / "baseline/result.json")["seconds"] > 0
    last = duration(started["last_seconds"])
    assert f"({last} last time); skip: --no-baseline" in live(team.runs / "latest", "baseline_started")
    told = f"running (last: {last}; skip: --no-baseline)"
    assert (
        PlainLines(Course())
        .of(BaselineStarted(at=started["at"], last_seconds=started["last_seconds"]))[0]
        .endswith(told)
    )


@pytest.mark.usefixtures("real_pytest")
@pytest.mark.parametrize(
    ("first", "until"),
    [
        ({"ask": "planner", "limits": {"seconds": 60}}, ('"role": "planner", "pid"',)),
        ({"ask": "planner", "isolate": "worktree"}, ('"role": "planner", "pid"',)),
        ({"check": "command", "with": {"argv": ["test", "-e", "left.txt"]}}, ()),
    ],
    ids=["time-limit", "copy", "check"],
)
def test_everything_else_waits_for_the_tests(tmp_path: Path, first: Record, until: tuple[str, ...]) -> None:
    team = planned(tmp_path, first, until)
    report = team.run(flow="own", run_tests=True)
    assert report.exit_code == 0, report
    moments = order(team, "baseline_started", "baseline_measured", "turn_started")
    assert moments[:2] == ["baseline_started", "baseline_measured"]
    assert read(report.folder / "run.json")["left_by_tests"] == ["left.txt"]


@pytest.mark.usefixtures("real_pytest")
def test_stopped_run_stops_the_tests_and_measures_again(tmp_path: Path) -> None:
    """As long as nobody has started to write: the planner's turn is kept. The tests end once the first run has."""
    team = planned(tmp_path, {"ask": "planner"}, until=('"run_ended"',))
    stopped = interrupted(team, ("turn_ended", "planner"), signal.SIGINT, flow="own", run_tests=True)
    assert (stopped.exit_code, stopped.reason) == (130, "the run was stopped")
    report = team.resume()
    assert report.exit_code == 0, report
    assert [(each["passed"], each["failed"]) for each in team.of_type("baseline_measured")] == [(1, 0)]
    moments = order(team, "baseline_started", "baseline_measured", "turn_started")
    assert moments == ["baseline_started", "baseline_measured", "turn_started one"]


@pytest.mark.usefixtures("real_pytest")
def test_run_that_fails_meanwhile_ends_the_tests_before_its_final_checks(tmp_path: Path) -> None:
    team = planned(tmp_path, {"ask": "planner"}, until=("never",))
    team.write_plays(planner=[{"fault": {"status": 400}}])
    check = {"id": "clean", "check": "command", "with": {"argv": ["touch", "cleaned.txt"]}}
    with_flow(team, {"steps": [{"ask": "planner"}, {"ask": "one"}], "finally": [check]})
    report = team.run(flow="own", run_tests=True)
    assert (report.exit_code, report.outcome) == (3, "bad_request"), report
    assert (team.workspace / "cleaned.txt").exists()
    assert not team.of_type("baseline_measured")
    assert [event["problem"] for event in team.of_type("final_check_ended")] == [""]


def test_failure_of_the_tests_is_raised_where_they_are_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr("codex_multi_role.steps.test_runs._measure", fail)
    team = planned(tmp_path, {"ask": "planner"})
    planner = {"ask": "planner", "next": [{"when": "goal == 'reach it'", "end": "done"}]}
    with_flow(team, {"steps": [planner, {"ask": "one"}]})
    for flow in (team, planned(tmp_path / "write", {"ask": "planner"})):
        report = flow.run(flow="own", run_tests=True)
        assert (report.exit_code, report.reason) == (3, "the disk is full")
        assert len(flow.turns()) == 1


def test_module_that_cannot_be_imported_hides_no_other_test(tmp_path: Path) -> None:
    """It is an id like a test; the others are compared. Breaking and deleting them is not a success."""
    team = team_that(tmp_path, writes(code=WRONG, tests="", red=""))
    (team.workspace / "test_optional.py").write_text("import nothing_like_it.at_all\n")
    report = team.run(run_tests=True, cycles=1)
    (measured,) = team.of_type("baseline_measured")
    assert (measured["passed"], measured["failed"], measured["errors"], measured["problem"]) == (1, 1, 1, "")
    assert (report.exit_code, result(team)["still_failing_tests"]) == (1, ["test_optional.py"])
    assert result(team)["removed_tests"] == ["test_green.py::test_one"]
    (warning,) = warnings(team.events)
    assert warning.startswith("cannot be imported: test_optional.py; install what ")
    assert warning.endswith(" lacks (nothing_like_it), or name another Python with --python")


def test_what_is_gone_needs_no_baseline(tmp_path: Path) -> None:
    team = team_that(tmp_path, writes(tests="", red=""), writes(tests="", red=""))
    report = team.run(run_tests=True, cycles=1, baseline=False)
    assert (report.exit_code, result(team)["verdict"]) == (1, "gone")
    assert result(team)["removed_tests"] == ["test_green.py::test_one", "test_red.py::test_old"]
    assert "compared with nothing (the tests did not run before the first change)" in report.reason


def test_removal_is_confirmed_without_a_turn_or_a_test(tmp_path: Path) -> None:
    team = team_that(tmp_path, writes(code=RIGHT, tests="def test_two():\n    assert True\n"))
    report = team.run(run_tests=True)
    assert (report.exit_code, len(team.turns())) == (1, 1)
    assert report.reason.endswith("gone: 1 test is gone: test_green.py::test_one (tests/001)")
    suggestion = "resume RUN --allow-removed-tests test_green.py::test_one"
    assert read(report.folder / "run.json")["suggestion"] == suggestion
    assert team.resume(allow_removed_tests=["test_other.py"]).exit_code == 1
    team.events.clear()
    assert team.resume(allow_removed_tests=["test_green.py::test_one"]).exit_code == 0
    assert not [event for event in team.events if event["type"] in ("turn_started", "tests_started")]


def test_removal_is_not_confirmed_where_the_recorded_path_would_change(tmp_path: Path) -> None:
    """The flow has asked again because of it, which it would not have."""
    gone = writes("CONTINUE", code=RIGHT, tests="def test_two():\n    assert True\n")
    team = team_that(tmp_path, gone, gone, gone)
    again = {"when": "steps.tested.verdict == 'gone' and steps.work.visits < 2", "to": "work"}
    work = {"id": "work", "ask": "one", "limits": {"visits": 3}}
    with_flow(team, {"steps": [work, {"id": "tested", "check": "tests", "next": [again]}]})
    assert team.run(flow="own", run_tests=True).exit_code == 1
    assert len(team.turns()) == 2
    with pytest.raises(UsageError, match=r"allow_removed_tests cannot be changed: what run \S+ recorded of") as refused:
        team.resume(allow_removed_tests=["test_green.py"])
    (command,) = re.findall(r"`codex-multi-role (fork .+?)` repeats", refused.value.hint)
    assert command.endswith("--allow-removed-tests test_green.py"), command
    done = console(*shlex.split(command), folder=tmp_path)
    assert done.returncode == 0, done.stderr


SOCKETS = "import socket\n\n\ndef test_{}():\n    socket.create_server(('127.0.0.1', 0))\n"


@pytest.mark.usefixtures("real_pytest")
def test_new_tests_without_sockets_are_reported_with_the_way_out(tmp_path: Path) -> None:
    written = [{"path": CODE, "content": RIGHT}, {"path": "test_more.py", "content": SOCKETS.format("new")}]
    team = team_that(tmp_path, say(status="DONE", files=written), say(status="DONE", files=written))
    (team.workspace / "test_sockets.py").write_text(SOCKETS.format("old"))
    report = team.run(run_tests=True, cycles=1)
    assert (report.exit_code, result(team)["new_failures_tests"]) == (1, ["test_more.py::test_new"])
    assert result(team)["still_failing_tests"] == ["test_red.py::test_old", "test_sockets.py::test_old"]
    denied = "need sockets, which the test sandbox forbids (--no-test-sandbox runs them without it)"
    assert report.reason.endswith(f"new failures: test_more.py::test_new; 2 tests {denied} (tests/001)")
    shown = " ".join(console("show", folder=tmp_path).stdout.split())
    assert f"2 tests {denied}" in shown, shown
    (measured,) = team.of_type("baseline_measured")
    assert measured["forbidden"] == {"sockets": 1}
    assert read(report.folder / "run.json")["suggestion"] == "fork RUN --from team:1 --no-test-sandbox"


@pytest.mark.parametrize("how", ["flow", "check"])
def test_removal_may_be_allowed_before(tmp_path: Path, how: str) -> None:
    team = team_that(tmp_path, writes(code=RIGHT, tests="def test_two():\n    assert True\n"))
    check = [{"check": "tests"}] if how == "check" else []
    allowed: Record = {"allow_removed_tests": ["test_green.py"]}
    with_flow(team, {"steps": [{"ask": "one"}, *check], **(allowed if how == "flow" else {})})
    report = team.run(flow="own", run_tests=True)
    assert report.exit_code == (how == "check"), report
    if how == "check":
        assert "--allow-removed-tests" in read(report.folder / "run.json")["suggestion"]
        assert team.resume(**allowed).exit_code == 0


@pytest.mark.usefixtures("real_pytest")
def test_tests_that_cannot_run_are_named_before_the_first_turn(tmp_path: Path) -> None:
    team = team_that(tmp_path, writes(code=RIGHT))
    (team.workspace / "conftest.py").write_text("raise OSError\n")
    team.run(run_tests=True, cycles=1)
    kinds = [event["type"] for event in team.events]
    (warning,) = warnings(team.events)
    assert warning.startswith("every failure will count as new: before the first change, the tests ended so: could not")
    assert warning.endswith("baseline/pytest_output.txt says why")
    assert kinds.index("warning") < kinds.index("turn_started")


def live(run: Path, last: str) -> str:
    """What the live view shows after the first event of that type."""
    events = list(read_events(run / "events.jsonl"))
    until = [event.type for event in events].index(last) + 1
    return picture(Course.of(events[:until])).replace("&#160;", " ")


def with_ignored(folder: Path, *turns: Record) -> TeamFolder:
    """A project with an ignored file that a test reads."""
    team = TeamFolder(folder, {"one": BOTH}, {"one": [*turns]})
    there = "Path(__file__).with_name('ignored.txt').exists()"
    reads = f"from pathlib import Path\n\n\ndef test_fixture():\n    assert {there}\n"
    files = {CODE: "def one():\n    return 1\n", "test_one.py": f"{reads}\n\n{GREEN}", "ignored.txt": ""}
    for name, text in {**files, ".gitignore": "ignored.txt\n"}.items():
        (team.workspace / name).write_text(text)
    return team


def test_fork_tests_the_state_before_in_its_own_folder(tmp_path: Path) -> None:
    """Its folder lacks what git ignores; the first turn was one of the run that it was forked from."""
    written = {"path": CODE, "content": RIGHT}
    wrong = {"path": "code_of.py", "content": "def one():\n    return 2\n"}
    team = with_ignored(tmp_path, say(files=[written]), say(status="DONE", files=[wrong]))
    team.run(run_tests=True, cycles=2, run_id="first")
    team.events.clear()
    report = fork(
        "first", runs_dir=team.runs, start="team:2", changes={"run_id": "second"}, on_event=team.events.append
    )
    (baseline,) = team.of_type("baseline_measured")
    assert (baseline["passed"], baseline["failed"]) == (1, 1)
    judged = read(team.runs / "second/tests/002/result.json")
    assert judged["new_failures_tests"] == ["test_one.py::test_one"]
    assert judged["still_failing_tests"] == ["test_one.py::test_fixture"]
    workspace = Path(read(team.runs / "second/run.json")["workspace"])
    assert (report.exit_code, (workspace / "code_of.py").read_text()) == (1, wrong["content"])


def test_copies_have_a_baseline_of_their_own(tmp_path: Path) -> None:
    """A copy lacks what git ignores, so that a test there has failed before as well."""
    written = {"path": CODE, "content": RIGHT}
    team = with_ignored(tmp_path, say(files=[written]), say(files=[written]))
    step: Record = {"ask": "one", "isolate": {"merge": "none"}, "for_each": {"items": ["a", "b"], "concurrency": 2}}
    with_flow(team, {"steps": [step]})
    team.run(flow="own", run_tests=True)
    first, in_copy = team.of_type("baseline_measured")
    assert (first["failed"], in_copy["failed"], in_copy["in_copy"]) == (0, 1, True)
    assert [each["new_failures"] for each in team.of_type("tests_ended")] == [0, 0, 0]
    assert not [*(team.runs / "latest/worktrees").glob("baseline*/*")]
