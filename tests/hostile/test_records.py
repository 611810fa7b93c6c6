"""A run folder, a batch and a goal file from elsewhere that name programs and places: nothing runs, all is named.

Costs: each command is tried on a run from elsewhere; what must work is run as well.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_multi_role.errors import UsageError
from codex_multi_role.host.user_cache import user_state
from codex_multi_role.option import Use
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunOptions, all_options
from tests.support.console import COMMANDS, Completed, console, never_tried, tried
from tests.support.serving import client
from tests.support.teams import WRITER, TeamFolder, say
from tests.support.workspaces import git, write_files, write_program

pytestmark = [pytest.mark.extensions, pytest.mark.real]
FILE = {**say("it"), "json": {"summary": "it", "files": [{"path": "a.txt", "content": "made\n"}]}}
RESTS = ("resume", "--cycles", "2"), ("fork", "--from", "team"), ("rerun",), ("rerun", "--dry-run")
GIT = ("core.fsmonitor", "core.hooksPath", "diff.evil.textconv", "filter.evil.clean", "core.alternateRefsCommand")


class Elsewhere:
    """The folder of a run that another machine recorded, which ``ran`` shows to have run something."""

    def __init__(self, folder: Path, team: TeamFolder) -> None:
        self.folder, self.team = folder, team
        self.ran = folder / "ran"
        self.program = folder / "evil"
        write_program(self.program, f"#!/bin/sh\ntouch {self.ran}\n")
        (self.run,) = (RunFolder(path.parent) for path in team.runs.glob("2*/run.json"))
        self.values: dict[str, Any] = {
            "codex_bin": str(self.program),
            "python": str(self.program),
            "config": [f'mcp_servers.evil.command="{self.program}"', f'notify=["{self.program}"]'],
            "database_url": f"sqlite:///{folder}/evil.sqlite",
            "record": str(folder / "evil.ndjson"),
            "pytest_cmd": f"{self.program} -m pytest",
            "workspace_setup": str(self.program),
            "test_sandbox": False,
        }

    def name(self, **options: Any) -> None:
        """Let the record say so."""
        record = json.loads(self.run.record_path.read_text())
        record["options"] |= options
        self.run.record_path.write_text(json.dumps(record))

    def arm_team(self, **keys: Any) -> None:
        """Let a role of its team have these keys."""
        catalog = next(self.run.catalog_path.rglob("catalog.yaml"))
        content = yaml.safe_load(catalog.read_text())
        content["roles"][0] |= keys
        catalog.write_text(yaml.safe_dump(content))
        self.name()
        record = json.loads(self.run.record_path.read_text())
        self.run.record_path.write_text(json.dumps({**record, "roles_source": str(catalog)}))

    def arm_git(self) -> None:
        """Let the repository of its states name programs."""
        hooks = self.run.snapshots_path / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in ("post-checkout", "post-index-change", "reference-transaction"):
            shutil.copy(self.program, hooks / name)
        with (self.run.snapshots_path / "config").open("a") as config:
            for key in GIT:
                section, name = key.rsplit(".", 1)
                head, _, rest = section.partition(".")
                where = f'[{head} "{rest}"]' if rest else f"[{head}]"
                config.write(f"{where}\n\t{name} = {hooks if name == 'hooksPath' else self.program}\n")
            config.write('[extensions]\n\tpartialClone = evil\n[remote "evil"]\n\tpromisor = true\n')
            config.write(f"\turl = ext::{self.program}\n[protocol]\n\tallow = always\n")
        write_files(self.run.snapshots_path, {"info/attributes": "* filter=evil diff=evil\n"})

    def call(self, verb: str, *words: str) -> Completed:
        return console(verb, self.run.run_id, *words, "--runs-dir", str(self.team.runs), folder=self.folder)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        team = TeamFolder(folder, {"one": WRITER}, {"one": [FILE, say("again")]})
        git(team.workspace, "init", "-q")
        assert team.run(test_seconds=77.0).status
        assert any((user_state() / "records").iterdir())
    return folder


@pytest.fixture
def elsewhere(recorded: Path, tmp_path: Path) -> Elsewhere:
    shutil.copytree(recorded, tmp_path / "there", symlinks=True)
    team = TeamFolder(tmp_path / "there", {"one": WRITER}, {"one": [FILE, say("again")]})
    return Elsewhere(tmp_path, team)


def test_every_option_of_the_column_is_tried(elsewhere: Elsewhere) -> None:
    assert {
        name for name, each in all_options().items() if (Use.TRUST | Use.OUTSIDE) & each.use
    } == elsewhere.values.keys()


@pytest.mark.parametrize("name", ["codex_bin", "python", "config", "database_url", "record", "test_sandbox"])
def test_what_only_a_record_from_elsewhere_says_is_refused_by_name(elsewhere: Elsewhere, name: str) -> None:
    value = elsewhere.values[name]
    others = ("pytest_cmd", "workspace_setup") if name == "test_sandbox" else ()
    elsewhere.name(**{each: elsewhere.values[each] for each in (name, *others)})
    before = sorted(elsewhere.folder.rglob("*"))
    for verb, *words in RESTS:
        done = elsewhere.call(verb, *words)
        assert done.returncode == 2, (verb, done.stdout, done.stderr)
        for option, named in ((name, value), *((each, elsewhere.values[each]) for each in others)):
            assert f"{option} (" in done.stderr
            assert all_options()[option].flag.removeprefix("--") in done.stderr
            assert option == "test_sandbox" or (named[0] if option == "config" else named) in done.stderr
    assert not elsewhere.ran.exists()
    assert sorted(elsewhere.folder.rglob("*")) == before


def test_what_the_team_of_a_record_from_elsewhere_starts_is_refused_by_name(elsewhere: Elsewhere) -> None:
    elsewhere.arm_team(mcp_servers={"files": {"command": str(elsewhere.program)}}, sandbox="danger-full-access")
    for verb, *words in RESTS:
        done = elsewhere.call(verb, *words)
        assert done.returncode == 2, (verb, done.stdout, done.stderr)
        for named in (f"mcp_servers (files: {elsewhere.program})", "danger-full-access", "--roles "):
            assert named in done.stderr, done.stderr
    assert not elsewhere.ran.exists()


def test_no_command_runs_what_a_run_from_elsewhere_names(elsewhere: Elsewhere) -> None:
    """Nor what a recording and a goal line name."""
    elsewhere.arm_team(mcp_servers={"files": {"command": str(elsewhere.program)}})
    elsewhere.name(**elsewhere.values)
    elsewhere.arm_git()
    place = elsewhere.team.folder
    options = {"goal": "it", "flow": "cycles", "inputs": {}, "cycles": 1, "repair_attempts": 1, "run_tests": True}
    header = {"type": "recording", "version": 1, "run": "it", "workspace": ".", "options": elsewhere.values}
    (place / "recording.ndjson").write_text(json.dumps({**elsewhere.values, **header, **options}) + "\n")
    (place / "goals.jsonl").write_text(json.dumps({"goal": "it", "config": elsewhere.values["config"]}))
    (place / "checkout").mkdir()
    git(place / "checkout", "init", "-q")
    codes = {}
    for words in COMMANDS:
        done = tried(words, place)
        codes[words] = done.returncode
        assert not elsewhere.ran.exists(), (words, done.stderr)
        assert "Traceback" not in done.stderr, (words, done.stderr)
    assert not never_tried()
    for page in ("/", "/start", run := f"/runs/{elsewhere.run.run_id}", f"{run}/report"):
        assert client(elsewhere.team.runs).get(page).status_code == 200, page
    assert not elsewhere.ran.exists()
    assert all(codes[words] == 0 for words in ("show", "report", "diff", "blame a.txt", "runs", "gc")), codes
    assert all(codes[words] == 2 for words in ("resume --cycles 2", "fork --from team", "batch goals.jsonl")), codes


@pytest.mark.long
def test_run_from_elsewhere_is_forked_and_its_owner_needs_no_word(elsewhere: Elsewhere, recorded: Path) -> None:
    """No short test continues a run from elsewhere."""
    elsewhere.arm_git()
    done = elsewhere.call("fork", "--from", "team")
    assert (done.returncode, elsewhere.ran.exists()) == (1, False), done.stderr
    elsewhere.name(config=["model_verbosity=low", "project_doc_max_bytes=0"])
    assert elsewhere.call("fork", "--from", "team").returncode == 2
    given = elsewhere.call("fork", "--from", "team", "-c", "project_doc_max_bytes=0")
    assert given.returncode == 1, given.stderr
    (elsewhere.folder / "codex-multi-role.yaml").write_text("config: [project_doc_max_bytes=0]\n")
    said = elsewhere.call("fork", "--from", "team")
    assert said.returncode == 1, said.stderr


def test_missing_states_are_fetched_from_nowhere(elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository may say that its objects are elsewhere: git then fetches them by a program such as ssh."""
    states = elsewhere.run.snapshots_path
    for key, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialclone": "evil",
        "remote.evil.url": "ssh://evil/x",
        "remote.evil.promisor": "true",
    }.items():
        git(elsewhere.folder, "config", "--file", str(states / "config"), key, value)
    for each in states.glob("objects/??/*"):
        if git(states, "--git-dir", str(states), "cat-file", "-t", each.parent.name + each.name).strip() == "blob":
            each.unlink()
    shutil.copy(elsewhere.program, elsewhere.folder / "ssh")
    monkeypatch.setenv("PATH", f"{elsewhere.folder}:{os.environ['PATH']}")
    done = elsewhere.call("diff")
    assert (done.returncode, elsewhere.ran.exists()) == (3, False), done


@pytest.fixture
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.usefixtures("_own_state", "scripted_codex")
def test_own_runs_need_no_new_word_wherever_they_were_moved(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path / "team", {"one": WRITER}, {"one": [FILE, say("again"), say("third")]})
    assert team.run(config=("project_doc_max_bytes=0",), test_sandbox=False, workspace_setup="true").outcome
    assert team.resume(cycles=2).outcome == "cycles_used_up"
    shutil.move(team.runs, tmp_path / "moved")
    (folder,) = (path.parent for path in (tmp_path / "moved").glob("2*/run.json"))
    for verb, *words in (("fork", "--from", "team"), ("rerun", "--dry-run")):
        done = console(verb, folder.name, *words, "--runs-dir", str(tmp_path / "moved"), folder=tmp_path)
        assert done.returncode in (0, 1), done.stderr
    (tmp_path / "goals.jsonl").write_text('{"goal": "it"}')
    named = {"playbook": team.playbook, "roles": team.folder / "roles", "workspace": team.workspace}
    given = [part for name, path in named.items() for part in (f"--{name}", str(path))]
    for words in ([*given, "--no-test-sandbox", "-c", "project_doc_max_bytes=0"], ["--resume"]):
        done = console("batch", "goals.jsonl", *words, folder=tmp_path)
        assert done.returncode == 1, done.stderr
    shutil.rmtree(tmp_path / "state/codex-multi-role/records")
    done = console("rerun", folder.name, "--dry-run", "--runs-dir", str(tmp_path / "moved"), folder=tmp_path)
    assert (done.returncode, "--no-test-sandbox" in done.stderr) == (2, True)


@pytest.mark.usefixtures("_own_state", "scripted_codex")
def test_read_only_home_has_no_notes(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    team = TeamFolder(tmp_path / "team", {"one": {}}, {"one": [say("it")]})
    assert team.run(config=("model_verbosity=low",)).outcome == "cycles_used_up"
    assert team.resume(cycles=1).outcome == "cycles_used_up"


TEAM = "role one has "
TRUSTED = {"test_sandbox": True}
LINES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    ({"config": ['mcp_servers.evil.command="evil"']}, TRUSTED, {}, "config (mcp_servers.evil"),
    ({"config": ["model_reasoning_effort=low"]}, TRUSTED, {}, ""),
    ({"pytest_cmd": "evil"}, {"test_sandbox": False}, {}, "pytest_cmd (evil)"),
    ({"pytest_cmd": "pytest"}, {"test_sandbox": False, "pytest_cmd": "pytest"}, {}, ""),
    ({"pytest_cmd": "pytest"}, TRUSTED, {}, ""),
    ({"roles": "roles"}, {}, {"mcp_servers": {"files": {"command": "evil"}}}, f"{TEAM}mcp_servers"),
    ({"roles": "roles"}, {}, {"sandbox": "danger-full-access"}, f"{TEAM}sandbox"),
    ({"roles": "roles"}, {"roles": "roles"}, {"sandbox": "danger-full-access"}, ""),
    ({"roles": "roles"}, {}, {}, ""),
]
"""A line of a goal file, what the user says, the rights of a role, and what is refused."""


@pytest.mark.parametrize(("line", "said", "rights", "named"), LINES)
def test_goal_file_names_no_program_and_no_team_that_leaves_the_sandbox(
    line: dict[str, Any], said: dict[str, Any], rights: dict[str, Any], named: str, tmp_path: Path
) -> None:
    """Unless the user says the same."""
    from codex_multi_role.extensions.machines.batches.goal_file import read_goals
    from codex_multi_role.extensions.machines.batches.planned_runs import Defaults, plan_runs

    team = TeamFolder(tmp_path, {"one": rights}, {"one": []})
    (tmp_path / "goals.jsonl").write_text(f"{json.dumps({'goal': 'it', **line})}\n" * 2)
    values = {**said, "workspace": team.workspace, "roles": tmp_path / said["roles"] if "roles" in said else None}
    with (tmp_path / "goals.jsonl").open("rb") as stream:
        goals = read_goals(stream, "goals.jsonl")
    defaults = Defaults(values, frozenset(), tmp_path)
    if not named:
        assert len(plan_runs(goals, defaults, "b", tmp_path)) == 2
        return
    with pytest.raises(UsageError) as refused:
        plan_runs(goals, defaults, "b", tmp_path)
    assert f"goals.jsonl:1: this line says what counts only if you say it as well: {named}" in str(refused.value)
    assert not rights or f"--roles {tmp_path / 'roles'}" in str(refused.value) + refused.value.hint


def test_resumed_batch_from_elsewhere_names_no_program(tmp_path: Path) -> None:
    (folder := tmp_path / "runs/batches/b").mkdir(parents=True)
    (tmp_path / "goals.jsonl").write_text('{"goal": "it"}')
    record = {"options": RunOptions(config=("notify=['evil']",)).as_record(), "given": [], "totals": {}}
    (folder / "batch.json").write_text(json.dumps(record))
    done = console("batch", "goals.jsonl", "--name", "b", "--resume", folder=tmp_path)
    assert (done.returncode, "config (notify=['evil'])" in done.stderr) == (2, True), done.stderr
