"""Editing roles while a run works: what is saved applies from the role's next turn on, or is refused visibly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_multi_role import RunReport, run
from codex_multi_role.codex.permissions import PROFILE
from codex_multi_role.lifecycle.definitions import load_definitions
from codex_multi_role.lifecycle.kept_definitions import keep_definitions
from codex_multi_role.lifecycle.live_roles import LiveRoles
from codex_multi_role.run_folder import Answer, EventLog, Question, RunFolder
from tests.support.reviews import ASKED_TWICE, NOTICED_SECONDS
from tests.support.teams import Record, TeamFolder, read, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edits are looked for at once, and half-written files read again soon."""
    monkeypatch.setattr("codex_multi_role.lifecycle.live_roles.LOOK_SECONDS", 0.1)


class Edited:
    """A run of ``flow`` in which somebody edits the roles while a question waits, until the run has reported it."""

    def __init__(self, team: TeamFolder, edit: Callable[[TeamFolder], None], told: str) -> None:
        self.team = with_flow(team, ASKED_TWICE)
        self._edit = edit
        self._told = told
        self._noticed = threading.Event()

    def run(self) -> RunReport:
        return run(self.team.options(flow="own"), self._take, self._answer)

    def _take(self, record: Record) -> None:
        self.team.events.append(record)
        if record["type"] == self._told:
            self._noticed.set()

    def _answer(self, question: Question, is_over: Callable[[], bool]) -> Answer:
        self._edit(self.team)
        assert self._noticed.wait(NOTICED_SECONDS), "the run has told of nothing"
        used = [told["catalog_file"] for told in self.team.of_type("roles_reloaded")]
        assert read(self.team.runs / "latest/run.json")["catalog_file"] in (used or ["catalog.yaml"])
        return Answer(True)


def edited(tmp_path: Path, told: str, *, before: Record | None = None, **keys: object) -> tuple[TeamFolder, RunReport]:
    """``keys``: what the role has after the edit; ``before``: what it had."""

    def edit(team: TeamFolder) -> None:
        team.write_catalog(one={**(before or {}), **keys})

    team = TeamFolder(tmp_path, {"one": before or {}}, {"one": [say("first"), say("second")]})
    report = Edited(team, edit, told).run()
    assert report.exit_code == 0, report
    return team, report


def test_saved_prompt_applies_from_next_turn_and_is_recorded(tmp_path: Path) -> None:
    team, report = edited(tmp_path, "roles_reloaded", prompt_text="Do it in verse.")
    assert ("in verse" in team.prompt("one", 1), "in verse" in team.prompt("one", 2)) == (False, True)
    (told,) = team.of_type("roles_reloaded")
    assert told["roles"] == {"one": ["prompt_text"]}
    assert read(report.folder / "run.json")["catalog_file"] == told["catalog_file"] == "reloaded_001/catalog.yaml"
    assert "in verse" in (report.folder / "catalog" / told["catalog_file"]).read_text()
    assert "in verse" not in (report.folder / "catalog/catalog.yaml").read_text()
    assert len(team.of_type("role_started")) == 1


def test_flow_that_is_edited_meanwhile_is_not_the_runs(tmp_path: Path) -> None:
    def edit(team: TeamFolder) -> None:
        (team.folder / "roles/flows/own.yaml").write_text("steps: [half")
        team.playbook.unlink()
        team.write_catalog(one={"prompt_text": "Do it in verse."})

    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say("first")]})  # the second answer is missing: the run fails
    report = Edited(team, edit, "roles_reloaded").run()
    assert (report.exit_code, len(team.turns())) == (3, 2)
    kept = report.folder / "catalog"
    assert (kept / "reloaded_001/flows/own.yaml").read_bytes() == (kept / "flows/own.yaml").read_bytes()
    team.write_plays(one=[say("first"), say("second")])
    assert team.resume(playbook=str(team.playbook)).exit_code == 0
    assert "in verse" in team.prompt("one", 2)


@pytest.mark.parametrize(("before", "told"), [("", True), ("# only a comment\n", False)])
def test_flow_edited_during_a_run_is_reported_once(tmp_path: Path, before: str, told: bool) -> None:
    """The run keeps its own. A role is edited as well, so that the edit has been noticed when the run ends."""

    def edit(team: TeamFolder) -> None:
        path = team.folder / "roles/flows/own.yaml"
        path.write_text(before + (path.read_text() if before else "steps: [{ask: one}]"))
        team.write_catalog(one={"prompt_text": "Do it in verse."})

    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say("first"), say("second")]})
    report = Edited(team, edit, "roles_reloaded").run()
    assert (report.exit_code, len(team.turns())) == (0, 2)
    found = [each["message"] for each in team.of_type("warning")]
    assert [each.startswith("the flow own was edited; the run continues with its own copy.") for each in found] == (
        [True] if told else []
    )


def test_process_setting_change_restarts_role_on_same_thread(tmp_path: Path) -> None:
    """A changed setting of the process gives the role a new process, which resumes its thread."""
    before: Record = {"prompt_flags": {"allow_write": True}, "behaviors": {"apply_files": True}}
    team, _ = edited(tmp_path, "roles_reloaded", before=before, sandbox="read-only")
    first, second = team.of_type("role_started")
    assert (first["thread_id"], first["resumed"]) == (second["thread_id"], False)
    assert second["resumed"]
    assert first["pid"] != second["pid"]


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_mcp_server_taken_away_is_gone_from_the_next_turn_on(tmp_path: Path) -> None:
    before: Record = {"mcp_servers": {"docs": {"command": "/nonexistent"}}}
    team, report = edited(tmp_path, "roles_reloaded", before=before, mcp_servers={})
    assert [each["roles"] for each in team.of_type("roles_reloaded")] == [{"one": ["mcp_servers"]}]
    assert len({each["pid"] for each in team.of_type("role_started")}) == 2
    messages = (report.folder / "one/events.jsonl").read_text().splitlines()
    warned = [line for line in messages if "mcpServer/startupStatus/updated" in line and "docs" in line]
    assert len([line for line in warned if '"failed"' in line]) == 1


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"prompt_text": ""}, 'role one: missing key "prompt_text"'),
        ({"behaviors": {"can_finish": True}}, "role one: a run keeps behaviors.can_finish"),
    ],
)
def test_rejected_edit_is_reported_and_last_valid_roles_stay(tmp_path: Path, keys: Record, message: str) -> None:
    """An edit is rejected if it is invalid or changes what a run keeps."""
    team, _ = edited(tmp_path, "warning", **keys)
    (told,) = [each["message"] for each in team.of_type("warning")]
    assert told.startswith("the roles are not reloaded: ")
    assert message in told
    assert "still apply" in team.prompt("one", 2)
    assert team.of_type("roles_reloaded") == []


def test_half_written_files_are_read_again_before_reporting(tmp_path: Path) -> None:
    """A reader finds half a file while somebody saves it."""
    team = TeamFolder(tmp_path, {"one": {}}, {})
    told: list[Record] = []
    definitions, folder = load_definitions(team.options()), RunFolder.create(team.runs, None)
    events = EventLog(folder.events_path, folder.redact)
    events.subscribe(told.append)
    catalog_file = keep_definitions(definitions, folder)
    live = LiveRoles(definitions, definitions.catalog.source, catalog_file, folder, events, lambda *_: None)
    catalog = definitions.catalog.source
    halves = ["", "version: 1\nroles:\n- name: one\n"]
    for half in halves:
        catalog.write_text(half)
        live.reload()
    assert told == []
    live.reload()
    assert [each["type"] for each in told] == ["warning"]
    live.reload()
    team.write_catalog(one={"prompt_text": "Do it in verse."})
    live.reload()
    assert [each["type"] for each in told] == ["warning", "roles_reloaded"]
    with live.following():
        assert "role-files" in {each.name for each in threading.enumerate()}
    assert "role-files" not in {each.name for each in threading.enumerate()}
    events.close()


WIDE: Record = {
    "sandbox": "danger-full-access",
    "approval_policy": "never",
    "auto_approve": {"commands": True},
    "protect": [],
    "mcp_servers": {"docs": {"command": "docs-server", "approval": "always"}},
    "codex_config": {"web_search": "live"},
    "behaviors": {"apply_files": True},
    "prompt_flags": {"allow_write": True, "allow_tools": False},
}


def test_edit_never_widens_permissions_before_run_is_resumed(tmp_path: Path) -> None:
    def edit(team: TeamFolder) -> None:
        team.write_catalog(one={**WIDE, "prompt_text": "Do it in verse."})

    before: Record = {"sandbox": "workspace-write", "protect": ["tests/**"]}
    team = TeamFolder(tmp_path, {"one": before}, {"one": [say("first")]})  # the second answer is missing: the run fails
    report = Edited(team, edit, "warning").run()
    assert report.exit_code == 3
    [told] = team.of_type("roles_reloaded")
    assert told["roles"] == {"one": ["prompt_text", "prompt_flags.allow_tools"]}
    [warning] = [each["message"] for each in team.of_type("warning")]
    assert warning.startswith("role one: sandbox and approval_policy and auto_approve and prompt_flags and behaviors")
    assert "in verse" in team.prompt("one", 2)
    assert set(sandboxes(report)) == {PROFILE}
    team.plays["one"].append(say("second"))
    team.write_plays()
    assert team.resume(playbook=str(team.playbook)).exit_code == 0
    assert "role one: sandbox" in team.of_type("warning")[0]["message"]
    assert sandboxes(report)[-1] == "danger-full-access"


def sandboxes(report: RunReport) -> list[str]:
    """What each of the role's threads was started or resumed with."""
    sent = map(json.loads, (report.folder / "one/events.jsonl").read_text().splitlines())
    asked = (line["message"] for line in sent if str(line["message"].get("method")).startswith("thread/"))
    return [each["params"].get("permissions") or each["params"]["sandbox"] for each in asked if "cwd" in each["params"]]


def test_another_role_belongs_to_another_run(tmp_path: Path) -> None:
    def edit(team: TeamFolder) -> None:
        team.write_catalog(two={})

    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say(), say()]})
    assert Edited(team, edit, "warning").run().exit_code == 0
    assert "a run keeps its roles, one; it has one, two now" in team.of_type("warning")[0]["message"]


def test_resumed_run_uses_saved_roles_and_keeps_watching_files(tmp_path: Path) -> None:
    def edit(text: str) -> Callable[[TeamFolder], None]:
        def change(team: TeamFolder) -> None:
            team.write_catalog(one={"prompt_text": text})

        return change

    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say("first")]})  # the second answer is missing: the run fails
    report = Edited(team, edit("Do it in verse."), "roles_reloaded").run()
    assert report.exit_code == 3
    team.plays["one"].append(say("second"))
    team.write_plays()
    again = team.resume(playbook=str(team.playbook))
    assert again.exit_code == 0, again
    last = max((report.folder / "one").glob("turn_*"))
    assert "in verse" in (last / "prompt.txt").read_text()
    assert read(report.folder / "run.json")["roles_source"] == str(tmp_path / "roles/catalog.yaml")


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_role_not_yet_asked_in_cycle_uses_saved_prompt(tmp_path: Path) -> None:
    """The roles of a cycle wait for each other. A prompt saved meanwhile applies from the next turn on."""
    wait = {"cmd": "until [ -e noticed ]; do sleep 0.05; done", "yield_time_ms": 30_000}
    slow = {"steps": [{"call": "exec_command", "arguments": wait}, say("first")]}
    team = TeamFolder(tmp_path, {"one": {}, "two": {"depends_on": ["one"]}}, {"one": [slow], "two": [say()]})

    def edit(record: Record) -> None:
        if record["type"] == "turn_started" and record["role"] == "one":
            for role in team.roles.values():
                role["prompt_text"] = "Do it in verse."
            team.write_catalog()
        elif record["type"] == "roles_reloaded":
            (team.workspace / "noticed").touch()

    report = run(team.options(), edit)
    assert report.outcome == "cycles_used_up"
    assert "in verse" not in team.prompt("one", 1)
    assert "in verse" in (report.folder / "two/turn_001/prompt.txt").read_text()
    assert team.resume().outcome == "cycles_used_up"
    assert team.turns() == []
