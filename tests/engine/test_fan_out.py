"""``for_each``, ``call`` and per-step prompts; the way through a flow is in `test_walk`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from codex_multi_role import run
from codex_multi_role.presentation.course import Course
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunReport
from tests.support.teams import ECHO, Record, fan, read, say, solver, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")


def test_events_say_what_people_call_items_and_how_each_step_ended(tmp_path: Path) -> None:
    """Also after a resume: the states are those of the whole run."""
    tasks = [{"id": "T1", "name": "slug words"}, {"id": "T2"}]
    failing: Record = {"fault": {"status": 400}}

    def told_of(report: RunReport) -> tuple[str, list[str]]:
        course = Course.of_run(RunFolder(report.folder))
        own, solve = course.run.parts
        assert (own.label, own.state, [*own.parts]) == ("own Look at the code", "COMPLETED", [])
        assert (solve.label, [part.label for part in solve.parts]) == ("solve", ["T1 slug words now", "T2"])
        return solve.state, [task.state for task in course.tasks]

    team = solver(
        tmp_path,
        [
            {"id": "own", "ask": "solver", "title": "Look at {{ goal }}"},
            {"id": "solve", "ask": "solver", "for_each": tasks, "title": "{{ item.name }} now"},
        ],
        [say(), say(), failing, say()],
    )
    report = team.run(flow="own", goal="the code")
    assert (report.exit_code, told_of(report)) == (3, ("FAILED", ["COMPLETED", "FAILED"]))
    team.write_plays(solver=[say()] * 4)
    again = team.resume(playbook=str(team.playbook))
    assert (again.exit_code, told_of(again)) == (0, ("COMPLETED", ["COMPLETED", "COMPLETED"]))


def test_item_starts_from_itself_alone_and_a_called_flow_from_its_inputs(tmp_path: Path) -> None:
    plays = [{"json": {"todos": ["x", "y"]}}, *[say("of solver")] * 9]
    listed = {"for_each": "{{ steps.plan.todos }}", "max_items": 5, "as": "todo"}
    steps: list[Record] = [
        {"id": "plan", "ask": "solver"},
        {"id": "solve", "ask": "solver", **listed},
        {"id": "shown", "ask": "solver", "prompt": "Do {{ todo }} now.", **listed},
        {"id": "inner", "call": "inner", "with": {"word": "{{ todo }}"}, **listed},
    ]
    inner: list[Record] = [{"ask": "solver"}, {"id": "look", "check": "answer", "with": {"text": "Looked."}}]
    team = solver(tmp_path, steps, plays)
    with_flow(team, {"inputs": {"word": {}}, "steps": [*inner, {"ask": "last"}]}, "inner")
    report = team.run(flow="own")
    assert report.exit_code == 0, report
    turns = [file.parent for file in report.folder.glob("*/turn_*/turn.json")]
    given = {read(turn / "turn.json")["unit"]: (turn / "prompt.txt").read_text() for turn in turns}
    for number, item in enumerate(("x", "y")):
        assert f'"todo": "{item}"' in given[f"solve.1.{number}"]
        assert f"Do {item} now." in given[f"shown.1.{number}"]
        assert f'"word": "{item}"' in given[f"inner.1.{number}/solver.1"]
        assert '"summary": "of solver"' in given[f"inner.1.{number}/last.1"]
        assert '"look": {' in given[f"inner.1.{number}/last.1"]
    items = [prompt for unit, prompt in given.items() if unit != "plan.1"]
    assert not any('"todos": [' in prompt for prompt in items)
    assert sum('"todo": ' in prompt for prompt in items) == 2


def test_list_may_be_given_with_the_run(tmp_path: Path) -> None:
    end = [{"when": "steps.solve.results[1].summary == 'did b'", "end": "all"}, {"end": "no"}]
    steps = [fan("{{ inputs.items }}", max_items=2, next=end)]
    team = solver(tmp_path, steps, inputs={"items": {"type": "list"}})
    assert team.run(flow="own", inputs={"items": "[a, b]"}).outcome == "all"
    too_many = team.run(flow="own", inputs={"items": "[a, b, c]"})
    assert (too_many.exit_code, len(team.turns())) == (2, 0)


def test_failed_item_fails_run_and_finished_items_are_reused(tmp_path: Path) -> None:
    """Unless failed items may be skipped, one of them ends the run. On resume, the finished items are not paid for
    again.
    """
    choose = [{"when": "'ITEM c' in prompt", "fault": {"status": 400}}, {**ECHO}]
    team = solver(tmp_path, [fan(["a", "b", "c", "d"])], [{"choose": choose}] * 9)
    report = team.run(flow="own")
    assert report.exit_code == 3
    told = read(report.folder / "controller_state.json")["history"]
    assert [entry["handoff"]["summary"] for entry in told] == ["did a", "did b"]
    team.write_plays(solver=[ECHO] * 9)
    assert team.resume(playbook=str(team.playbook)).outcome == "success"
    assert len(team.turns()) == 2


def test_finished_item_is_not_repeated_by_another_process(tmp_path: Path) -> None:
    """Regression (found by endurance tests): only the process used now was checked, and the journal did not have the
    turn yet.
    """
    team = solver(tmp_path, [fan(["a", "b"], concurrency="{{ inputs.at_once }}")], inputs={"at_once": 2})

    def stop_at_the_end_of_one(event: Record) -> None:
        if (event["type"], event.get("role")) == ("turn_ended", "solver.2"):
            raise OSError("the machine goes down before the journal is written")

    assert run(team.options(flow="own"), stop_at_the_end_of_one).exit_code == 3
    report = team.resume(inputs={"at_once": 1})
    assert (report.outcome, team.turns()) == ("success", [])


def test_handoffs_of_parallel_called_flows_keep_item_order(tmp_path: Path) -> None:
    """Found by the endurance tests: handoffs were in order of completion, and a resumed run counted differently."""
    slow_first = {"choose": [{"when": "'ITEM a' in prompt", "delay_seconds": 0.5, **ECHO}, ECHO]}
    steps: list[Record] = [
        {
            "id": "sub",
            "call": "inner",
            "with": {"word": "{{ item }}"},
            "for_each": {"items": ["a", "b"], "concurrency": 2},
        },
        {"id": "after", "ask": "solver"},
    ]
    team = solver(tmp_path, steps, [slow_first, say("second"), say("third")])
    inner = {"inputs": {"word": {"required": True}}, "steps": [{"ask": "solver", "prompt": "ITEM {{ inputs.word }}."}]}
    (tmp_path / "roles/flows/inner.yaml").write_text(yaml.safe_dump(inner))
    report = team.run(flow="own")
    history = read(report.folder / "controller_state.json")["history"]
    assert [entry["handoff"]["summary"] for entry in history] == ["did a", "did b", "third"]


def test_steps_reply_schema_stands_in_for_the_roles(tmp_path: Path) -> None:
    reply = {"type": "object", "required": ["grade"], "properties": {"grade": {"type": "integer"}}}
    plays = [{"json": {"summary": "no grade"}, "repairs": [{"json": {"grade": 3}}]}]
    team = solver(tmp_path, [{"id": "it", "ask": "solver", "reply": reply}], plays)
    assert team.run(flow="own").outcome == "success"
    assert [turn[2] for turn in team.turns()] == ["invalid_reply", "completed"]


def test_fan_out_keeps_its_initial_cycles_on_resume(tmp_path: Path) -> None:
    """With more cycles on resume, its items would record more than the journal has room for."""
    steps: list[Record] = [
        {"id": "outer", "call": "inner", "for_each": ["{{ cycles }}", 9], "with": {"it": "{{ item }}"}},
        {"ask": "last", "next": [{"when": "steps.outer.visits < 2", "to": "outer"}, {"end": "success"}]},
    ]
    team = solver(tmp_path, steps, [say()] * 30)
    inner: list[Record] = [
        {"id": "parts", "ask": "solver", "prompt": "{{ inputs.it }} of {{ cycles }} {{ item }}.", "for_each": ["x"]},
        {"ask": "solver", "next": [{"when": "cycle < cycles", "to": "parts"}, {"end": "well"}]},
    ]
    called = {"inputs": {"it": {"type": "integer"}}, "steps": inner}
    (tmp_path / "roles/flows/inner.yaml").write_text(yaml.safe_dump(called))
    assert team.run(flow="own", cycles=1, max_turns=3).exit_code == 5
    report = team.resume(cycles=4, max_turns=None)
    assert report.outcome == "success", report
    assert report.totals["turns"] == 2 * 2 + 1 + 2 * 8 + 1
    first, second = ((report.folder / f"solver/turn_{turn:03d}/prompt.txt").read_text() for turn in (1, 5))
    assert ("1 of 1 x." in first, "4 of 4 x." in second) == (True, True)
    warned = [event["message"] for event in team.of_type("warning")]
    assert warned == ["step outer: its items keep the cycles it started with: 1"]


def test_role_after_fan_out_continues_its_own_thread(tmp_path: Path) -> None:
    """Found with the scale test: the next ask continued the thread of the last item."""
    steps: list[Record] = [
        fan(["a", "b"]),
        {"id": "after", "ask": "solver"},
        {"id": "apart", "ask": "solver", "isolate": "worktree"},
        {"id": "again", "ask": "solver"},
    ]
    team = solver(tmp_path, steps, [say()] * 9)
    report = team.run(flow="own")
    assert report.outcome == "success", report
    turns = sorted((report.folder / "solver").glob("turn_*/turn.json"))
    one, two, after, apart, again = (read(path)["thread_id"] for path in turns)
    assert after == again
    assert len({one, two, after, apart}) == 4
