"""The flow `cycles`, and flows of one's own: order, stop rule, checks, routes, named ends, roles with a file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from codex_multi_role.errors import DefinitionError
from codex_multi_role.run_folder import RunFolder
from tests.support.teams import WRITER, TeamFolder, read, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")


@pytest.mark.real
def test_loop_over_ask_and_check_until_the_tests_pass(tmp_path: Path) -> None:
    files = [{"path": "test_it.py", "content": f"def test_it():\n    assert {value}\n"} for value in (False, True)]
    team = TeamFolder(tmp_path, {"writer": WRITER}, {"writer": [say(files=[file]) for file in files]})
    route = [
        {"when": "steps.measure.failed == 0", "end": "green"},
        {"when": "steps.measure.visits >= inputs.most", "end": "gave_up", "exit": 1},
        {"to": "writer"},
    ]
    steps = [{"ask": "writer"}, {"id": "measure", "check": "tests", "next": route}]
    report = with_flow(team, {"inputs": {"most": 3}, "steps": steps}).run(flow="own")
    assert (report.outcome, report.exit_code) == ("green", 0)
    assert [turn[:2] for turn in team.turns()] == [("writer", 1), ("writer", 2)]
    assert '"status": "failed"' in (report.folder / "writer/turn_002/prompt.txt").read_text()
    record = read(report.folder / "run.json")
    assert (record["flow"], record["inputs"]) == ("own", {"most": 3})
    assert (report.folder / "catalog/flows/own.yaml").is_file()


STEPS = {"steps": [{"id": "ask", "ask": "guest"}]}


def team_with_guest(folder: Path, where: Path) -> TeamFolder:
    team = TeamFolder(folder, {"one": {}}, {"guest": [say("hello"), say("again")]})
    where.mkdir(exist_ok=True)
    (where / "guest.yaml").write_text(yaml.safe_dump({"name": "guest", "prompt_text": "Be polite."}))
    return with_flow(team, STEPS)


def test_it_is_found_beside_the_catalog_and_kept_with_the_run(tmp_path: Path) -> None:
    team = team_with_guest(tmp_path, tmp_path / "roles")
    report = team.run(flow="own")
    assert report.exit_code == 0, report
    assert "Be polite." in (report.folder / "guest/turn_001/prompt.txt").read_text()
    assert (report.folder / "catalog/guest.yaml").exists()


def test_packaged_role_is_found_and_kept_for_a_resumed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role that is not in the catalog may also be a packaged one. A resumed run uses its own copy."""
    packaged = tmp_path / "packaged"
    team = team_with_guest(tmp_path, packaged)
    monkeypatch.setattr("codex_multi_role.catalog.flow_loading.definition_folders", lambda: [packaged])
    team.write_plays(guest=[])
    assert team.run(flow="own").exit_code == 3
    (packaged / "guest.yaml").unlink()
    team.write_plays(guest=[say("late")])
    assert team.resume(playbook=str(team.playbook)).exit_code == 0


def test_role_of_the_catalog_comes_first(tmp_path: Path) -> None:
    team = team_with_guest(tmp_path, tmp_path / "roles")
    team.write_catalog(guest={"prompt_text": "Be brief."})
    report = team.run(flow="own")
    assert "Be brief." in (report.folder / "guest/turn_001/prompt.txt").read_text()


def test_invalid_role_file_is_named_in_the_error(tmp_path: Path) -> None:
    team = team_with_guest(tmp_path, tmp_path / "roles")
    (tmp_path / "roles/guest.yaml").write_text("name: other\nprompt_text: x\n")
    with pytest.raises(DefinitionError, match='unknown role "guest"'):
        team.run(flow="own")
    (tmp_path / "roles/guest.yaml").write_text("name: guest\nprompt: x\n")
    with pytest.raises(DefinitionError, match=r'guest\.yaml:\d+:1: unknown key "prompt"'):
        team.run(flow="own")


DONE = say("it is done", status="Done")


def test_roles_take_turns_for_n_cycles_and_pass_on_handoffs(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [say("a"), say("b")], "two": [say("c"), say("d")]})
    report = team.run(cycles=2)
    assert (report.outcome, report.exit_code) == ("cycles_used_up", 1)
    assert [turn[:2] for turn in team.turns()] == [("one", 1), ("two", 1), ("one", 2), ("two", 2)]
    assert '"summary": "a"' in (report.folder / "two/turn_001/prompt.txt").read_text()
    assert '"summary": "c"' in (report.folder / "one/turn_002/prompt.txt").read_text()
    state = read(report.folder / "controller_state.json")
    assert state["latest_json_by_role"] == {"one": {"summary": "b"}, "two": {"summary": "d"}}
    assert [(entry["role"], entry["handoff"]["summary"]) for entry in state["history"]] == [
        ("one", "a"),
        ("two", "c"),
        ("one", "b"),
        ("two", "d"),
    ]
    assert report.totals["turns"] == 4


def test_done_of_a_role_that_may_finish_ends_the_run_mid_cycle(tmp_path: Path) -> None:
    roles = {"first": {"behaviors": {"can_finish": True}}, "second": {}}
    team = TeamFolder(tmp_path, roles, {"first": [DONE], "second": [say()]})
    report = team.run(cycles=3)
    assert (report.status, report.outcome, report.exit_code) == ("succeeded", "done", 0)
    assert team.turns() == [("first", 1, "completed")]


def test_done_of_any_other_role_is_recorded_and_ignored(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"first": {}, "second": {}}, {"first": [DONE], "second": [say()]})
    report = team.run()
    assert report.outcome == "cycles_used_up"
    assert [event["role"] for event in team.of_type("done_ignored")] == ["first"]
    assert len(team.turns()) == 2


def test_independent_roles_run_at_the_same_time(tmp_path: Path) -> None:
    roles: dict[str, dict[str, object]] = {
        "left": {},
        "right": {},
        "join": {"depends_on": ["left", "right"]},
    }
    slow = {"json": {"summary": "slow"}, "delay_seconds": 1}
    team = TeamFolder(tmp_path, roles, {"left": [slow], "right": [slow], "join": [say()]})
    report = team.run()
    order = [(event["type"], event["role"]) for event in team.events if event["type"] in ("turn_started", "turn_ended")]
    assert {role for kind, role in order[:2] if kind == "turn_started"} == {"left", "right"}
    assert order[-2:] == [("turn_started", "join"), ("turn_ended", "join")]
    prompt = (report.folder / "join/turn_001/prompt.txt").read_text()
    assert '"left": {' in prompt
    assert '"right": {' in prompt


def test_invalid_answer_is_asked_for_again_on_the_same_thread(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [{"text": "no object", "repairs": [say("now")]}]})
    report = team.run()
    assert team.turns() == [("one", 1, "invalid_reply"), ("one", 2, "completed")]
    first, second = (read(report.folder / f"one/turn_00{number}/turn.json") for number in (1, 2))
    assert second["repair_of"] == 1
    assert first["thread_id"] == second["thread_id"]
    assert "exactly one" in (report.folder / "one/turn_002/prompt.txt").read_text()
    assert report.totals["repairs"] == 1


def test_role_without_valid_answer_fails_run_and_keeps_state(tmp_path: Path) -> None:
    """The state has the answers of the earlier roles."""
    wrong = {"text": "no", "repairs": [{"text": "still no"}]}
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [say()], "two": [wrong]})
    report = team.run(repair_attempts=1)
    assert (report.status, report.outcome, report.exit_code) == ("failed", "invalid_reply", 3)
    assert "two" in report.reason
    assert read(report.folder / "controller_state.json")["latest_json_by_role"] == {"one": {"summary": "fine"}}
    assert read(report.folder / "run.json")["exit_code"] == 3


def test_failed_optional_role_is_skipped(tmp_path: Path) -> None:
    """The next role gets the handoff that the skipped role would have received."""
    roles: dict[str, dict[str, object]] = {"one": {}, "critic": {"optional": True}, "two": {}}
    plays = {"one": [say("from one")], "critic": [{"fault": {"status": 400}}], "two": [say()]}
    team = TeamFolder(tmp_path, roles, plays)
    report = team.run()
    assert report.outcome == "cycles_used_up"
    assert [event["role"] for event in team.of_type("role_skipped")] == ["critic"]
    assert "from one" in (report.folder / "two/turn_001/prompt.txt").read_text()


def test_provider_errors_are_retried_and_are_not_repairs(tmp_path: Path) -> None:
    """Retries are counted separately from repairs."""
    plays = {"one": [{"attempts": [{"fault": {"status": 500}}, {"json": {"summary": "second try"}}]}]}
    team = TeamFolder(tmp_path, {"one": {}}, plays)
    report = team.run()
    assert team.turns() == [("one", 1, "failed"), ("one", 2, "completed")]
    assert [read(report.folder / f"one/turn_00{number}/turn.json")["attempt"] for number in (1, 2)] == [1, 2]
    assert report.totals["repairs"] == 0


def test_every_outgoing_role_has_its_own_thread_and_wire_log(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [say()], "two": [say()]})
    report = team.run()
    threads = {read(report.folder / f"{role}/turn_001/turn.json")["thread_id"] for role in ("one", "two")}
    assert len(threads) == 2
    for role in ("one", "two"):
        assert "turn/completed" in (report.folder / role / "events.jsonl").read_text()
    assert RunFolder.find(team.runs, "latest").path == report.folder
