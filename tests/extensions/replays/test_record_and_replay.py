"""A run is recorded in front of a provider and replayed without one: the same handoffs, the same workspace.

Costs: each case is a run and its replay, some on the real binary.
"""

from __future__ import annotations

import json
import stat
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import RunOptions, RunReport, resume, run
from codex_multi_role.errors import CodexNotLoggedIn, UsageError
from codex_multi_role.extensions.replays.recording import Recording
from codex_multi_role.extensions.replays.run_outcome import suggested_options
from codex_multi_role.lifecycle.definitions import load_definitions
from codex_multi_role.lifecycle.model_providers import start_providers
from codex_multi_role.run_folder import EventLog, RunFolder
from tests.support.recordings import KEY, KEY_VARIABLE, exchanges_of, provider_of
from tests.support.teams import ECHO, Record, TeamFolder, read, read_lines, say, warnings, with_flow
from tests.support.workspaces import files_of

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

FULL = {"input_tokens": 1_000_000, "output_tokens": 5}
PATCH = "*** Begin Patch\n*** Add File: note.txt\n+hello\n*** End Patch\n"
SECRET = "correct-horse-battery-staple"
SCHEMA = {"type": "object", "required": ["summary", "size"], "properties": {"size": {"type": "integer"}}}
ROLES: dict[str, Record] = {
    "maker": {"sandbox": "workspace-write", "approval_policy": "never", "behaviors": {"apply_files": True}},
    "judge": {"output_schema": SCHEMA, "behaviors": {"can_finish": True}},
}
WHERE = {"call": "exec_command", "arguments": {"cmd": "pwd > where.txt; cat where.txt"}}
PLAYS: dict[str, list[Record]] = {
    "maker": [
        {
            "attempts": [
                {"fault": {"status": 429, "code": "rate_limit_exceeded", "headers": {"Retry-After": "1"}}},
                {
                    "steps": [
                        WHERE,
                        {"call": "exec_command", "arguments": {"cmd": "echo two"}, "usage": FULL},
                        {"patch": PATCH},
                        {"json": {"summary": "made {{ tool_outputs | length }}", "status": "CONTINUE"}},
                    ]
                },
            ]
        },
        {
            "attempts": [
                {"fault": {"drop": True, "after_events": 4}},
                {"json": {"summary": "again", "files": [{"path": "made/a.txt", "content": "a"}]}},
            ]
        },
    ],
    "judge": [
        {"json": {"summary": "no size"}, "repairs": [{"json": {"summary": "not yet", "size": 1}}]},
        {"json": {"summary": "good", "size": 2, "status": "DONE"}},
    ],
}


@dataclass
class Recorded:
    """One recorded run, with the provider gone."""

    team: TeamFolder
    file: Path
    report: RunReport
    received: list[dict[str, str]]
    events: list[Record]

    def replay(self, folder: Path, roles: Path | None = None, **changes: Any) -> tuple[RunReport, list[Record]]:
        """In another workspace, with what the recording says, and no more."""
        (folder / "shop").mkdir(parents=True, exist_ok=True)
        given = suggested_options(Recording.load(self.file), folder / "shop")
        roles = roles or self.team.folder / "roles"
        places = {"workspace": folder / "shop", "runs_dir": folder / "runs", "roles": roles, "replay": self.file}
        events: list[Record] = []
        return run(RunOptions(**{**given, **places, **changes}), events.append), events


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_multi_role.steps.recovery.FIRST_PAUSE_SECONDS", 0.01)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("recorded")
    team = TeamFolder(folder, ROLES, {})
    with pytest.MonkeyPatch.context() as patched, provider_of(PLAYS) as provider:
        patched.setenv(KEY_VARIABLE, KEY)
        patched.setenv("SHOP_PASSWORD", SECRET)
        patched.setattr("codex_multi_role.steps.recovery.FIRST_PAUSE_SECONDS", 0.01)
        file = folder / "shop.ndjson"
        options = {"playbook": None, "config": provider.settings(), "model": "playbook", "cycles": 3, "record": file}
        report = team.run(**options, goal=f"open the shop with {SECRET}")
        return Recorded(team, file, report, provider.received, list(team.events))


@pytest.fixture
def no_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "empty"))
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


def handoffs(report: RunReport) -> Any:
    return read(report.folder / "controller_state.json")


def test_recorded_run_goes_as_it_would(recorded: Recorded) -> None:
    assert (recorded.report.outcome, recorded.report.exit_code) == ("done", 0), recorded.report
    assert {headers["authorization"] for headers in recorded.received} == {f"Bearer {KEY}"}
    ends = [(line["role"], line["kind"], line["status"], line["end"]) for line in exchanges_of(recorded.file)]
    assert ("maker", "turn", 429, "text") in ends
    assert ("maker", "turn", 200, "broken") in ends
    assert ("maker", "compaction", 200, "completed") in ends
    (warning,) = warnings(recorded.events)
    assert "Long threads and multiple compactions" in warning  # Codex's own


@pytest.mark.usefixtures("real_codex")
def test_replay_gives_same_result_without_provider_and_login(
    recorded: Recorded, tmp_path: Path, no_login: None
) -> None:
    report, events = recorded.replay(tmp_path)
    assert (report.outcome, report.exit_code) == ("done", 0), report
    assert read(report.folder / "replay.json")["differences"] == []
    assert handoffs(report)["history"] == handoffs(recorded.report)["history"]
    then, now = files_of(recorded.team.workspace), files_of(tmp_path / "shop")
    assert now.pop("where.txt").decode().strip() == str(tmp_path / "shop")  # the command really ran, and here
    assert then.pop("where.txt").decode().strip() == str(recorded.team.workspace)
    assert now == then == {"note.txt": b"hello\n", "made/a.txt": b"a"}
    turns = [(event["role"], event["status"]) for event in events if event["type"] == "turn_ended"]
    assert turns == [(e["role"], e["status"]) for e in recorded.events if e["type"] == "turn_ended"]


def test_no_secret_and_no_path_of_this_machine_is_in_the_file(recorded: Recorded) -> None:
    text = recorded.file.read_text(encoding="utf-8")
    assert SECRET not in text
    assert KEY not in text
    assert str(recorded.team.folder) not in text
    assert str(Path.home()) not in text or len(Path.home().parts) < 2
    assert "authorization" not in text.lower()
    assert stat.S_IMODE(recorded.file.stat().st_mode) == 0o600


def test_file_says_what_the_run_was_and_how_it_ended(recorded: Recorded) -> None:
    first, *_, last = read_lines(recorded.file)
    assert (first["version"], first["flow"], first["cycles"]) == (1, "cycles", 3)
    assert first["goal"] == "open the shop with [redacted]"
    assert (last["type"], last["outcome"], last["exit_code"]) == ("ended", "done", 0)
    assert set(last["files"]) == {"note.txt", "made/a.txt", "where.txt"}
    assert [entry["role"] for entry in last["handoffs"]] == ["judge", "judge", "maker", "maker"]


def changed_roles(recorded: Recorded, folder: Path) -> Path:
    roles = folder / "roles"
    roles.mkdir(parents=True)
    text = (recorded.team.folder / "roles/catalog.yaml").read_text()
    (roles / "catalog.yaml").write_text(text.replace("prompt_text: Do it.", "prompt_text: Do it well.", 1))
    return roles


def test_changed_prompt_fails_its_turn_and_shows_the_difference(recorded: Recorded, tmp_path: Path) -> None:
    report, events = recorded.replay(tmp_path, changed_roles(recorded, tmp_path))
    assert (report.outcome, report.exit_code) == ("not_as_recorded", 3), report
    assert "visit 1: its prompt differs from the recorded one" in report.reason
    assert "--replay-match nearest" in report.hint
    [diff] = (report.folder / "replay").glob("*.diff")
    assert "-Do it.\n+Do it well." in diff.read_text()
    assert any(str(diff) in message for message in warnings(events))
    told = "role maker, visit 1: its prompt differs from the recorded one"
    assert read(report.folder / "replay.json")["on_the_way"] == [told]


@pytest.mark.long
def test_items_that_run_at_once_find_their_own_answers(tmp_path: Path) -> None:
    """Only here items ask at once: each has the same role and visit within the flow that it calls."""
    ask = {"id": "do", "ask": "solver", "prompt": "ITEM {{ inputs.letter }}."}
    inner = {"name": "inner", "inputs": {"letter": "?"}, "steps": [ask]}
    fan = {"id": "each", "call": "inner", "for_each": {"items": list("abcd"), "as": "letter", "concurrency": 3}}
    plays = {"solver": [ECHO], "last": [say()]}
    team = TeamFolder(tmp_path, {"solver": {}, "last": {}}, plays, {"repeat_last": True})
    with_flow(team, {"steps": [{**fan, "with": {"letter": "{{ letter }}"}}]})
    (tmp_path / "roles/flows/inner.yaml").write_text(json.dumps(inner))
    file = tmp_path / "fan.ndjson"
    assert team.run(flow="own", record=file).exit_code == 0
    report = team.run(flow="own", playbook=None, replay=file)
    assert report.exit_code == 0, report
    assert read(report.folder / "replay.json")["differences"] == []
    assert len({line["unit"] for line in exchanges_of(file)}) == 4


@pytest.mark.usefixtures("real_codex")
def test_recording_continues_when_its_run_is_resumed(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say("first"), say("second")]})
    file = team.workspace / "recordings/two.ndjson"
    file.parent.mkdir()
    assert team.run(record=file, cycles=2, max_turns=1).exit_code == 5
    assert Recording.load(file).ended is None
    assert team.resume(max_turns=9).exit_code == 1
    assert [turn.ask.visit for turn in Recording.load(file).turns] == [1, 2]
    assert not warnings(team.events)
    file = file.rename(tmp_path / "two.ndjson")
    report = team.run(playbook=None, replay=file, cycles=2)
    assert (report.outcome, read(report.folder / "replay.json")["differences"]) == ("cycles_used_up", [])


@pytest.mark.parametrize("left", ["", "its first line"])
def test_recording_continues_after_kill_before_first_turn(tmp_path: Path, left: str) -> None:
    file = tmp_path / "one.ndjson"
    team = TeamFolder(tmp_path, {"one": {}}, {})
    definitions, folder = load_definitions(team.options(record=file)), RunFolder.create(team.runs, None)
    for _ in range(2):
        with closing(EventLog(folder.events_path, folder.redact)) as events, ExitStack() as stack:
            start_providers(definitions, folder, events, stack)
        assert [line["run"] for line in read_lines(file)] == [folder.run_id]
        file.write_text(file.read_text() if left else "")


@pytest.mark.long
def test_resumed_run_continues_without_missing_recording(tmp_path: Path) -> None:
    """Only here a recording is gone: a warning reports that the rest is not recorded."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say("first"), say("second")]})
    file = tmp_path / "two.ndjson"
    assert team.run(record=file, cycles=2, max_turns=1).exit_code == 5
    file.unlink()
    assert team.resume(max_turns=9).exit_code == 1
    assert any("continues without being recorded" in message for message in warnings(team.events))
    assert not file.exists()


@pytest.mark.long
def test_replay_can_be_resumed_and_its_file_may_be_gone(tmp_path: Path) -> None:
    """Only here a replay is resumed."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say("first"), say("second")]})
    file = tmp_path / "two.ndjson"
    assert team.run(record=file, cycles=2).exit_code == 1
    assert team.run(playbook=None, replay=file, cycles=2, max_turns=1).exit_code == 5
    file.unlink()
    report = team.resume(max_turns=9)
    assert (report.exit_code, read(report.folder / "replay.json")["differences"]) == (1, [])


@pytest.mark.usefixtures("real_codex")
def test_role_cannot_change_its_recording(tmp_path: Path) -> None:
    forge = {"call": "exec_command", "arguments": {"cmd": "echo forged >> run.ndjson; echo fine > fine.txt"}}
    role = {"sandbox": "workspace-write", "approval_policy": "never"}
    team = TeamFolder(tmp_path, {"one": role}, {"one": [{"steps": [forge, say()]}]})
    file = team.workspace / "run.ndjson"
    assert team.run(record=file).exit_code == 1
    assert "forged" not in [line.strip() for line in file.read_text().splitlines()]
    assert set((Recording.load(file).ended or {})["files"]) == {"fine.txt"}


def test_recording_overwrites_no_file_and_makes_no_folder(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    (file := tmp_path / "mine.ndjson").write_text("precious")
    for place, problem in ((file, "already exists"), (tmp_path / "nope/run.ndjson", f"not found: {tmp_path}/nope")):
        with pytest.raises(UsageError, match=problem):
            team.run(record=place)
    assert (file.read_text(), (tmp_path / "nope").exists(), team.runs.exists()) == ("precious", False, False)


@pytest.mark.usefixtures("real_codex")
def test_run_that_never_asked_leaves_no_recording(tmp_path: Path, no_login: None) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {})
    with pytest.raises(CodexNotLoggedIn):
        team.run(playbook=None, record=tmp_path / "none.ndjson")
    assert not (tmp_path / "none.ndjson").exists()


@pytest.mark.parametrize("other", [{"record": Path("a")}, {"playbook": "roman-numerals"}])
def test_replay_takes_neither_recording_nor_playbook(tmp_path: Path, other: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        RunOptions(**{"goal": "x", "replay": Path("b"), **other})


def test_resume_takes_no_recording_of_its_own(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    team.run()
    late: Any = {"record": tmp_path / "late.ndjson"}
    with pytest.raises(UsageError, match="keeps its record"):
        resume("latest", runs_dir=team.runs, changes=late)


@pytest.mark.long
def test_recorded_answer_no_longer_guessed_is_not_as_recorded(tmp_path: Path) -> None:
    """Only here a recorded answer, once repaired by guessing, is refused: the turn that asks again is not recorded."""
    team, file = TeamFolder(tmp_path, {"one": {}}, {"one": [say("a")]}), tmp_path / "run.ndjson"
    team.run(record=file)
    text = file.read_text()
    guessed = text.replace(r"\"summary\": \"a\"", r"\"summary\": \"a\" \"more\": 1")
    assert guessed != text
    file.write_text(guessed)
    report = team.run(replay=file, playbook=None, workspace=team.workspace, runs_dir=tmp_path / "replays")
    assert (report.exit_code, report.outcome) == (3, "not_as_recorded")
    assert [turn["outcome"] for turn in team.of_type("turn_ended")] == ["invalid_reply", "not_as_recorded"]
