"""A project of the original program runs as it is: its catalog by its own name, role files and skills beside it."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from codex_multi_role import RunReport, fork, resume, run
from codex_multi_role.run_folder import Answer, Question, RunFolder
from tests.support.catalogs import files_of_skill as files_of
from tests.support.catalogs import seven_zipped, zipped
from tests.support.console import console
from tests.support.reviews import ASKED_TWICE, NOTICED_SECONDS
from tests.support.teams import Record, TeamFolder, read, say

ORIGINAL = Path(__file__).parent / "catalog/original/config"
ROLES = ("planner", "architect", "implementer", "integrator")
FILES: Record = {"files": [{"path": "roman.py", "content": "x = 1\n"}]}
PLAYS = {role: [say(role, **(FILES if role == "implementer" else {}))] for role in ROLES}


class Project(TeamFolder):
    """``config/developer_config.yaml`` and what belongs to it."""

    def write_catalog(self, **changed: Record) -> None:
        if not self.catalog.exists():
            shutil.copytree(ORIGINAL, self.folder / "config")
            for name, pack in (("uml", seven_zipped), ("python-architect", zipped)):
                shutil.rmtree(self.folder / "config/skills" / name)
                (self.folder / "config/skills" / f"{name}.skill").write_bytes(pack(files_of(name)))

    @property
    def catalog(self) -> Path:
        return self.folder / "config/developer_config.yaml"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, {}, deepcopy(PLAYS))


def skills_seen(report: RunReport, role: str) -> set[str]:
    """The skills whose text reached the model, from what Codex itself keeps of the conversation."""
    kept = "".join(path.read_text() for path in (report.folder / ".codex" / role).rglob("rollout-*"))
    found = (json.loads(line) for line in kept.splitlines())
    texts = [json.dumps(line) for line in found if "<skill>" in json.dumps(line)]
    return {name for name in ("uml", "python-architect") if any(f"<name>{name}</name>" in text for text in texts)}


@pytest.mark.real
def test_it_runs_by_its_own_name_and_each_role_gets_its_skills(project: Project) -> None:
    report = project.run(roles=project.catalog)
    assert report.exit_code == 1, report  # one cycle, and nobody said DONE
    assert [role for role, _, _ in project.turns()] == list(ROLES)
    assert (project.workspace / "roman.py").read_text() == "x = 1\n"
    assert {role: skills_seen(report, role) for role in ROLES} == {
        "planner": set(),
        "architect": {"uml", "python-architect"},
        "implementer": set(),
        "integrator": set(),
    }
    assert read(report.folder / "run.json")["catalog_file"] == "developer_config.yaml"
    kept = report.folder / "catalog"
    assert (kept / "roles/planner.yaml").is_file()
    assert (kept / ".agents/skills/uml/SKILL.md").read_bytes() == files_of("uml")["SKILL.md"]


@pytest.mark.long
def test_skill_of_the_project_with_the_same_name_changes_nothing(project: Project) -> None:
    """The original unpacked its archives into ``.codex/skills``; Codex loads neither of two that share a name."""
    for name in ("uml", "python-architect"):
        folder = project.workspace / ".codex/skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: an old copy\n---\nOLD COPY\n")
    report = project.run(roles=project.catalog)
    assert skills_seen(report, "architect") == {"uml", "python-architect"}
    kept = "".join(path.read_text() for path in (report.folder / ".codex/architect").rglob("rollout-*"))
    assert "OLD COPY" not in kept


@pytest.mark.long
def test_it_resumes_from_the_copy_after_the_original_is_gone(project: Project) -> None:
    """No short test deletes the catalog of a run."""
    project.plays["integrator"].append(say("done", status="DONE"))
    for role in ROLES[:-1]:
        project.plays[role].append(say(role))
    project.write_plays()
    report = project.run(roles=project.catalog)
    shutil.rmtree(project.folder / "config")
    report = resume("latest", runs_dir=project.runs, changes={"cycles": 2})
    assert report.exit_code == 0, report
    assert skills_seen(report, "architect") == {"uml", "python-architect"}


@pytest.mark.real
def test_changed_skill_reaches_the_role_from_its_next_turn_on(tmp_path: Path) -> None:
    project = Project(tmp_path, {}, {"architect": [say("first"), say("second")]})
    add_flow(project, ASKED_TWICE, "architect")
    noticed = threading.Event()

    def take(record: Record) -> None:
        project.events.append(record)
        if record["type"] == "roles_reloaded":
            noticed.set()

    def answer(question: Question, is_over: Callable[[], bool]) -> Answer:
        changed = files_of("uml") | {"scripts/run.sh": b"#!/bin/sh\necho changed\n"}
        (tmp_path / "config/skills/uml.skill").write_bytes(seven_zipped(changed))
        assert noticed.wait(NOTICED_SECONDS)
        return Answer(True)

    report = run(project.options(roles=project.catalog, flow="own"), take, answer)
    assert report.exit_code == 0, report
    assert [record["roles"] for record in project.of_type("roles_reloaded")] == [{"architect": ["skills"]}]
    assert len(project.of_type("role_started")) == 2  # its process reads skills as it starts
    assert b"changed" in (report.folder / "catalog/reloaded_001/.agents/skills/uml/scripts/run.sh").read_bytes()


@pytest.mark.long
def test_fork_and_a_flow_beside_the_catalog(project: Project) -> None:
    """No short test forks a run of one catalog file."""
    add_flow(project, ASKED_TWICE, "architect")
    project.plays["architect"] += [say("second"), say("third")]
    project.write_plays()
    first = project.run(roles=project.catalog, flow="own", yes=True)
    assert first.exit_code == 0, first
    report = fork(first.run_id, start="second", runs_dir=project.runs)
    assert report.exit_code == 0, report
    assert skills_seen(report, "architect") == {"uml", "python-architect"}
    assert read(report.folder / "run.json")["roles_source"] == str(project.catalog)


@pytest.mark.parametrize("way", [pytest.param("flag", marks=pytest.mark.extensions), "variable", "settings file"])
def test_every_command_takes_the_file(project: Project, way: str) -> None:
    add_flow(project, {"description": "mine", "steps": [{"ask": "planner"}]}, "planner")
    shutil.rmtree(project.folder / "roles")
    name = "config/developer_config.yaml"
    option = ["--roles", name] if way == "flag" else []
    variables = {"CODEX_MULTI_ROLE_ROLES": name} if way == "variable" else {}
    if way == "settings file":
        (project.folder / "codex-multi-role.yaml").write_text(f"roles: {name}\n")

    def said(*arguments: str) -> str:
        done = console(*arguments, *option, folder=project.folder, variables=variables)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert said("roles", "validate") == f"ok: {name}: {', '.join(ROLES)}\n"
    assert "own" in said("flows", "list")
    if way != "flag":
        return
    assert name in said("roles", "list")
    assert said("flows", "validate", "own").startswith("ok: own")
    dry = ["--goal", "g", "--workspace", "workspace", "--dry-run", "--playbook", "playbook.yaml"]
    assert "Du bist ARCHITECT." in said("run", *dry)
    assert "$uml" in said("run", *dry)
    said("roles", "new", "reviewer")
    assert (project.folder / "config/reviewer.yaml").is_file()
    assert said("roles", "validate").endswith(", reviewer\n")


@pytest.mark.long
@pytest.mark.extensions
def test_page_starts_runs_with_the_file(project: Project) -> None:
    """No short test gives the page a catalog file."""
    from codex_multi_role.extensions.pages.serve.starting import NewRun, RunStarter, read_flows

    add_flow(project, {"steps": [{"ask": "planner"}]}, "planner")
    starter = RunStarter(project.runs, project.catalog, lambda: False)
    options = {"cycles": "1", "workspace": str(project.workspace), "playbook": str(project.playbook)}
    wanted = NewRun("own", "reach it", options)
    folder = RunFolder(project.runs / starter.start(wanted))
    deadline = time.monotonic() + 60
    while starter.reap() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert read(folder.record_path)["catalog_file"] == "developer_config.yaml"
    assert "own" in [entry.name for entry in read_flows(project.catalog).whole]


def test_settings_file_error_lists_replacement_of_each_key(project: Project) -> None:
    keys = {"OPENAI_API_KEY": "sk-secret-secret", "GOAL": "", "CYCLES": 2, "RUN_TESTS": 0, "HARD_TIMEOUT_S": 0, "X": 1}
    keys |= {"PYTEST_CMD": "python -m pytest", "ROLE_CONFIG_PATH": "developer_config.yaml", "ROLE_TIMEOUT_S": 600}
    keys |= {"PLANNER_TIMEOUT_S": 240, "CODEX_ALLOW_COMMANDS": 1, "CODEX_AUTO_APPROVE_COMMANDS": False}
    (project.folder / "config/main.yaml").write_text(yaml.safe_dump(keys, sort_keys=False))
    done = console("roles", "validate", "--roles", "config/main.yaml", folder=project.folder)
    assert done.returncode == 2
    assert [line.strip() for line in done.stderr.splitlines()] == [
        "error: config/main.yaml:1:1: these are settings, not a catalog of roles. Each key here, and what replaces it:",
        "OPENAI_API_KEY: `codex-multi-role codex login --with-api-key`",
        "GOAL: --goal VALUE",
        "CYCLES: --cycles 2",
        "RUN_TESTS: --no-run-tests",
        "HARD_TIMEOUT_S: nothing; every turn has a limit, limits.turn_seconds",
        "X: no counterpart",
        "PYTEST_CMD: --pytest-cmd 'python -m pytest'",
        "ROLE_CONFIG_PATH: --roles config/developer_config.yaml",
        "ROLE_TIMEOUT_S: defaults: {limits: {idle_seconds: 600}} in the catalog",
        "PLANNER_TIMEOUT_S: limits: {idle_seconds: 240} of the roles with timeout_policy: planner",
        "CODEX_ALLOW_COMMANDS: defaults: {prompt_flags: {allow_tools: true}} in the catalog",
        "CODEX_AUTO_APPROVE_COMMANDS: defaults: {auto_approve: {commands: false}} in the catalog",
        "hint: Name the catalog itself, --roles config/developer_config.yaml. Options may also be in "
        "codex-multi-role.yaml.",
    ]
    done = console("roles", "validate", "--roles", "config", folder=project.folder)
    assert "--roles config/developer_config.yaml or config/main.yaml" in done.stderr


def add_flow(project: Project, flow: Record, role: str) -> None:
    """The flow ``own`` beside the catalog, asking ``role`` instead of ``one``."""
    folder = project.folder / "config/flows"
    folder.mkdir()
    text = yaml.safe_dump({"name": "own", **flow})
    (folder / "own.yaml").write_text(text.replace("ask: one", f"ask: {role}"))
