"""Runs that are repeated: what is asked again, what it remembers, what the workspace holds.

Costs: each case is a run and its repetition.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

import pytest

from codex_multi_role import RunOptions, RunReport, fork, resume
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays import rerun
from codex_multi_role.extensions.replays.prepare_rerun import prepare_rerun
from codex_multi_role.extensions.replays.rerun_forecast import forecast_rerun
from codex_multi_role.option_keywords import ForkKeywords
from codex_multi_role.run_folder import RunFolder
from tests.support.forks import builders
from tests.support.models import AnyModel, Body, Items, any_model, message, texts
from tests.support.prices import price_playbook
from tests.support.teams import WRITER, Record, TeamFolder, read, say, warnings, with_flow
from tests.support.workspaces import files_of, write_files

pytestmark = pytest.mark.usefixtures("scripted_codex")

EDITED = "Do it again."


def again(team: TeamFolder, run: str = "latest", **changes: Unpack[ForkKeywords]) -> RunReport:
    """Repeat ``run`` with ``changes`` of its options."""
    team.events.clear()
    return rerun(run, runs_dir=team.runs, changes=changes, on_event=team.events.append)


def taken(team: TeamFolder) -> list[bool]:
    """Whether each turn of the last run was taken over, in order."""
    return [bool(event["reused_from"]) for event in team.of_type("turn_ended")]


def workspace(report: RunReport) -> Path:
    return Path(read(report.folder / "run.json")["workspace"])


def answer(body: Body) -> Items:
    """A handoff that depends on all that the request shows of the conversation."""
    said = texts(body, "assistant") + texts(body, "user").rpartition("Role: ")[2]
    return message(json.dumps({"summary": hashlib.sha256(said.encode()).hexdigest()[:8]}))


@pytest.fixture
def model() -> Iterator[AnyModel]:
    with any_model(answer) as served:
        yield served


def talkers(folder: Path, model: AnyModel, steps: list[Record]) -> TeamFolder:
    """Two roles that only answer, on the real binary with ``model``."""
    team = TeamFolder(folder, {"one": {}, "two": {}}, {})
    return with_flow(team, {"steps": steps})


@pytest.mark.real
@pytest.mark.sample("rerun")
@pytest.mark.usefixtures("real_codex")
def test_unchanged_run_asks_nothing(tmp_path: Path) -> None:
    """Without a process and without a bill, and its workspace is the same byte for byte."""
    team = TeamFolder(
        tmp_path,
        {"plan": {}, "build": WRITER},
        {"plan": [say()], "build": [say(files=[{"path": "a.txt", "content": "1\n"}])]},
    )
    (team.workspace / "old.txt").write_text("old\n")
    with_flow(team, {"steps": [{"ask": "plan"}, {"ask": "build"}]})
    team.run(flow="own")
    forecast = forecast_rerun(RunFolder.find(team.runs, "latest"), {})
    report = again(team)
    assert (forecast.taken, forecast.asked) == (2, [])
    assert (taken(team), report.totals["turns"], report.totals["input_tokens"]) == ([True, True], 0, 0)
    assert not team.of_type("role_started")
    assert files_of(workspace(report)) == files_of(team.workspace)


@pytest.fixture
def short(tmp_path: Path) -> TeamFolder:
    """A team after a run of two turns, whose catalog is a symlink in the workspace."""
    team = TeamFolder(tmp_path, {"one": WRITER, "two": {}}, {"one": [say()], "two": [say()]})
    with_flow(team, {"steps": [{"ask": "one"}, {"ask": "two"}]})
    (team.workspace / "roles").symlink_to(team.folder / "roles")
    team.run(flow="own", roles=team.workspace / "roles")
    return team


def test_forecast_asks_nothing_of_a_run_without_changes(short: TeamFolder) -> None:
    """Its roles are a link, which is protected as in the rerun; nor can a turn that the flow no longer has be asked."""
    run = RunFolder.find(short.runs, "latest")
    assert forecast_rerun(run, {}).asked == []
    for prepare in (forecast_rerun, prepare_rerun):
        with pytest.raises(UsageError, match="is inside the workspace"):
            prepare(run, {"workspace": short.workspace / "inside"})
    with_flow(short, {"steps": [{"ask": "one"}]})
    assert forecast_rerun(run, {}).asked == []


def test_relative_playbook_is_found_from_any_folder(short: TeamFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is recorded with its whole path: another file of that name in the current folder is never used instead."""
    monkeypatch.chdir(short.playbook.parent)
    short.run(flow="own", playbook=short.playbook.name)
    (short.folder / "elsewhere").mkdir()
    monkeypatch.chdir(short.folder / "elsewhere")
    assert again(short).exit_code == 0


def test_rerun_keeps_the_price_list_of_its_run(short: TeamFolder) -> None:
    """It is as people edited it meanwhile, or as the run had it if the file is gone."""
    prices = price_playbook(short.folder / "own.yaml", 10)
    first = short.run(flow="own", prices=prices)
    price_playbook(prices, 20)
    assert prepare_rerun(RunFolder(first.folder), {}).definitions.prices.models["playbook"].input == 20
    prices.unlink()
    assert prepare_rerun(RunFolder(first.folder), {}).definitions.prices.models["playbook"].input == 10


def test_known_section_matters_to_later_turns_only(tmp_path: Path) -> None:
    """The first prompt of a conversation has all instructions."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say(), say()]})
    with_flow(team, {"steps": [{"id": "a", "ask": "one"}, {"id": "b", "ask": "one"}]})
    team.run(flow="own")
    catalog = team.folder / "roles/catalog.yaml"
    catalog.write_text(f"{catalog.read_text()}general_prompts: {{known_section: Edited.}}\n")
    again(team)
    assert taken(team) == [True, False]


def test_protection_matters_to_writing_roles_only(tmp_path: Path) -> None:
    """Nothing that another role does by itself can be undone; the files that it submits are checked again."""
    roles = {"one": {}, "two": WRITER, "three": {"sandbox": "workspace-write"}}
    team = TeamFolder(tmp_path, roles, {role: [say()] for role in roles})
    steps = [{"ask": role} for role in roles]
    with_flow(team, {"steps": steps})
    team.run(flow="own")
    with_flow(team, {"steps": steps, "protect": ["a.txt"]})
    again(team)
    assert taken(team) == [True, True, False]


@pytest.mark.parametrize("part", ["basis", "recorded"])
def test_turn_of_another_version_is_asked(short: TeamFolder, part: str) -> None:
    """What this version does not know, it cannot compare."""
    first = RunFolder.find(short.runs, "latest")
    stored = first.path / "two/turn_001/turn.json"
    result = read(stored)
    stored.write_text(json.dumps({**result, part: {**result[part], "unknown": ""}}))
    assert forecast_rerun(first, {}).more_may_follow
    again(short)
    assert taken(short) == [True, False]


def test_older_run_takes_over_no_more_turns_of_all_runs(short: TeamFolder) -> None:
    """It resumes, and says so once."""
    stored = short.run(flow="own", max_turns=1).folder / "run.json"
    record = read(stored)
    stored.write_text(json.dumps({**record, "options": {**record["options"], "reuse": "*"}}))
    short.events.clear()
    resume("latest", runs_dir=short.runs, changes={"max_turns": 9}, on_event=short.events.append)
    assert (taken(short), len([each for each in warnings(short.events) if "rerun" in each])) == ([False], 1)
    assert "reuse" not in read(stored)["options"]


@pytest.mark.long
def test_lost_conversation_is_reported(tmp_path: Path, model: AnyModel) -> None:
    """Only here Codex has lost a conversation: the role gets its latest handoff, and no run takes that over."""
    steps: list[Record] = [{"id": "a", "ask": "one"}, {"id": "c", "ask": "one"}]
    team = talkers(tmp_path, model, steps)
    first = team.run(flow="own", playbook=None, config=model.config)
    shutil.rmtree(first.folder / ".codex")
    with_flow(team, {"steps": [steps[0], {**steps[1], "prompt": EDITED}]})
    report = again(team)
    assert taken(team) == [True, False]
    assert any("conversation of the earlier run was not found" in each for each in warnings(team.events))
    assert read(report.folder / "one/turn_002/turn.json")["basis"]["refused"] == "its conversation was lost"


@pytest.mark.long
def test_rerun_of_rerun_takes_over_both(tmp_path: Path, model: AnyModel) -> None:
    """Only here a conversation is forked twice: a third run takes over what the second one asked."""
    steps: list[Record] = [{"id": "a", "ask": "one"}, {"id": "c", "ask": "one"}]
    team = talkers(tmp_path, model, steps)
    team.run(flow="own", playbook=None, config=model.config)
    with_flow(team, {"steps": [steps[0], {**steps[1], "prompt": EDITED}]})
    again(team)
    assert taken(team) == [True, False]
    again(team)
    assert taken(team) == [True, True]
    with_flow(team, {"steps": [steps[0], {**steps[1], "prompt": EDITED}, {"id": "d", "ask": "one"}]})
    model.bodies.clear()
    again(team)
    assert taken(team) == [True, True, False]
    assert texts(model.bodies[0], "assistant").count("summary") == 2


@pytest.mark.long
def test_tests_run_again_without_new_prompts(tmp_path: Path) -> None:
    """Only here tests run again, of which only the times differ: the roles see the earlier figures."""
    tests = "def test_it() -> None:\n    assert True\n"
    plays = {"build": [say(files=[{"path": "test_it.py", "content": tests}])], "judge": [say()]}
    team = with_flow(
        TeamFolder(tmp_path, {"build": WRITER, "judge": {}}, plays), {"steps": [{"ask": "build"}, {"ask": "judge"}]}
    )
    team.run(flow="own", run_tests=True)
    again(team)
    assert len(team.of_type("tests_ended")) == 1
    assert taken(team) == [True, True]


@pytest.mark.real
def test_timed_check_before_the_first_turn_is_confirmed(tmp_path: Path) -> None:
    """So is one in a called flow: the roles see the earlier durations, and are not asked again."""
    timed = {"id": "k", "check": "command", "with": {"argv": ["sh", "-c", "sleep 0.0$(date +%N | cut -c4-5)"]}}
    steps: list[Record] = [timed, {"ask": "one", "with": {"seen": "{{ steps.k }}"}}]
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say(), say()]})
    with_flow(team, {"steps": steps}, "inner")
    with_flow(team, {"steps": [*steps, {"id": "in", "call": "inner"}]})
    team.run(flow="own")
    assert forecast_rerun(RunFolder.find(team.runs, "latest"), {}).asked == []
    again(team)
    assert taken(team) == [True, True]


@pytest.mark.real
def test_check_result_of_another_version_is_not_used(tmp_path: Path) -> None:
    timed = {"id": "k", "check": "command", "with": {"argv": ["sh", "-c", "echo 0.1 s"]}}
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    with_flow(team, {"steps": [timed, {"ask": "one", "with": {"goal": "{{ goal }}"}}]})
    (measured,) = team.run(flow="own").folder.glob("checks/**/measured.json")
    measured.write_text(json.dumps({**read(measured), "unknown": ""}))
    assert (again(team).outcome, taken(team)) == ("success", [True])


CHECKED: list[Record] = [
    {"id": "k", "check": "command", "with": {"argv": ["test", "{{ inputs.file }}"]}},
    {"id": "m", "check": "command", "with": {"argv": ["true"]}},
    {"ask": "one", "with": {"seen": "{{ steps.k.exit_code }}"}},
]


@pytest.fixture
def checked(tmp_path: Path) -> TeamFolder:
    """A team after a run with two checks before its only turn."""
    team = with_flow(TeamFolder(tmp_path, {"one": {}}, {"one": [say()]}), {"inputs": {"file": "x"}, "steps": CHECKED})
    team.run(flow="own")
    return team


def possible(team: TeamFolder, steps: list[Record] = CHECKED, **changes: object) -> list[bool]:
    """Whether each turn that a rerun of ``steps`` may ask is certain to be asked."""
    with_flow(team, {"inputs": {"file": "x"}, "steps": steps})
    return [turn.certain for turn in forecast_rerun(RunFolder.find(team.runs, "latest"), changes).asked]


@pytest.mark.real
def test_forecast_does_not_know_edited_checks(checked: TeamFolder) -> None:
    """Their command, their order, and what all checks depend on."""
    first, second, turn = CHECKED
    assert possible(checked) == []
    assert possible(checked, [{**first, "with": {"argv": ["false"]}}, second, turn]) == [False]
    assert possible(checked, [second, first, turn]) == [False]
    assert possible(checked, inputs={"file": ""}) == [False]
    assert possible(checked, test_sandbox=not RunOptions().tests.test_sandbox) == [False]


def looker(command: str) -> list[Record]:
    """Answers of a model that runs ``command`` first."""
    return [{"steps": [{"call": "exec_command", "arguments": {"cmd": command}}, say()]}]


@pytest.mark.long
@pytest.mark.parametrize(
    ("sandbox", "expected"), [("workspace-write", [True, False]), ("danger-full-access", [False, False])]
)
def test_files_that_a_turn_looked_at_count(tmp_path: Path, sandbox: str, expected: list[bool]) -> None:
    """Only here a turn ran a command: it is asked again if the workspace differs, and always without a sandbox."""
    roles = {"one": {"sandbox": sandbox}}
    team = TeamFolder(tmp_path, roles, {"one": looker("cat in.txt > out.txt")})
    first = ""
    for text, is_taken in (("1", False), ("1", expected[0]), ("2", expected[1])):
        check = {"id": "k", "check": "command", "with": {"argv": ["sh", "-c", f"echo {text} > in.txt"]}}
        with_flow(team, {"steps": [check, {"ask": "one", "with": {"note": "fixed"}}]})
        report = again(team, first) if first else team.run(flow="own")
        assert taken(team) == [is_taken]
        assert (workspace(report) / "out.txt").read_text() == f"{text}\n"
        first = first or report.run_id


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "reason", "is_taken"),
    [("git log", "it used git", False), ("cat .env", "", False), ("cat in.txt", "", True)],
)
def test_files_in_no_snapshot_count(tmp_path: Path, command: str, reason: str, is_taken: bool) -> None:
    """Only here a command reads what git ignores, which the restored workspace lacks: the turn is asked again."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": looker(command)})
    with_flow(team, {"steps": [{"ask": "one"}]})
    files = {"in.txt": "1\n", ".gitignore": ".env\n.venv\n", ".venv/lib.py": "", ".env": "A=1\n"}
    write_files(team.workspace, files)
    first = team.run(flow="own")
    if "env" in command:
        (team.workspace / ".env").write_text("A=2\n")
    forecast = forecast_rerun(RunFolder(first.folder), {})
    assert [turn.reason for turn in forecast.asked] == ([reason] if reason else [])
    again(team)
    assert taken(team) == [is_taken]


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_effects_in_no_snapshot_are_not_lost(tmp_path: Path) -> None:
    """A turn that changed what a snapshot lacks is asked again, because its changes cannot be made again."""
    roles: dict[str, Record] = {"one": {"sandbox": "workspace-write"}}
    team = TeamFolder(tmp_path, roles, {"one": looker("mkdir -p dist && echo 1 > dist/o.txt")})
    look = {"argv": ["sh", "-c", "test -e dist/o.txt"], "expect": [0]}
    with_flow(team, {"steps": [{"ask": "one"}, {"id": "look", "check": "command", "with": look}]})
    (team.workspace / ".gitignore").write_text("dist\n")
    first = team.run(flow="own")
    forecast = forecast_rerun(RunFolder(first.folder), {})
    assert [turn.reason.partition(":")[0] for turn in forecast.asked] == ["it changed what no snapshot has"]
    assert first.exit_code == again(team).exit_code == 0
    assert taken(team) == [False]


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_binary_file_with_its_path_is_written_again(tmp_path: Path) -> None:
    """The path of the new workspace is another. A turn after one that was asked again would see other files."""
    contents = {"one": r"\000", "two": r'\000%s" "$PWD'}
    roles: dict[str, Record] = {name: {"sandbox": "workspace-write"} for name in contents}
    plays = {name: looker(f'printf "{content}" > {name}.bin') for name, content in contents.items()}
    team = with_flow(TeamFolder(tmp_path, roles, plays), {"steps": [{"ask": "one"}, {"ask": "two"}]})
    team.run(flow="own")
    report = again(team)
    assert taken(team) == [True, False]
    assert (workspace(report) / "one.bin").read_bytes() == b"\0"
    assert (workspace(report) / "two.bin").read_bytes() == b"\0" + str(workspace(report)).encode()


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_file_with_the_path_of_its_run_is_written_again(tmp_path: Path) -> None:
    """The run folder is another one."""
    roles: dict[str, Record] = {"one": {"sandbox": "workspace-write"}}
    team = TeamFolder(tmp_path, roles, {"one": looker("printenv CODEX_MULTI_ROLE_RUN > out.txt")})
    with_flow(team, {"steps": [{"ask": "one"}]})
    team.run(flow="own")
    second = again(team)
    assert taken(team) == [False]
    assert (workspace(second) / "out.txt").read_text().startswith(str(second.folder))


@pytest.mark.long
def test_interrupted_rerun_resumes(tmp_path: Path) -> None:
    """Only here a rerun is resumed: it continues with its own turns, and takes over the rest.

    Checks run again, and their results decide which later turns are taken over.
    """
    team = builders(tmp_path)
    first = team.run(flow="own")
    team.roles["judge"]["prompt_text"] = "Judge."
    team.write_catalog()
    parked = again(team, first.run_id, max_turns=1)
    assert (parked.status, taken(team)) == ("parked", [True, True, False, True])
    stored = parked.folder / "run.json"
    record = read(stored)
    del record["forked_from"]["rerun"]
    stored.write_text(json.dumps({**record, "options": {**record["options"], "reuse": first.run_id}}))
    team.events.clear()
    report = resume(parked.run_id, runs_dir=team.runs, changes={"max_turns": 9}, on_event=team.events.append)
    assert (report.outcome, report.totals["turns"], taken(team)) == ("judged", 3, [False, True, False])
    assert files_of(workspace(report)) == files_of(team.workspace)


def test_fork_of_rerun_asks(short: TeamFolder) -> None:
    """A fork does again what follows, even if it could be taken over."""
    report = again(short)
    short.events.clear()
    fork(report.run_id, runs_dir=short.runs, start="two", on_event=short.events.append)
    assert taken(short) == [False]
