"""AGENTS.md and skills of a project reach its roles; what its ``.codex/config.toml`` says takes no effect."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codex_multi_role.playbook import Playbook, PlaybookServer
from tests.support.models import model_requests, texts
from tests.support.teams import Record, TeamFolder, say
from tests.support.workspaces import write_files

pytestmark = pytest.mark.real

SKILL = "---\nname: {name}\ndescription: {name} for testing\n---\nbody\n"
MARKS = ("RULES OF THE PROJECT", "RULES OF THE FOLDER", "in-codex", "in-agents")


def project(team: TeamFolder) -> Path:
    """A git repository whose folder ``part`` the roles work in, with all that Codex looks for in a project."""
    root = team.workspace
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "AGENTS.md").write_text("RULES OF THE PROJECT\n")
    part = root / "part"
    write_files(part, {"AGENTS.md": "RULES OF THE FOLDER\n"})
    (root / ".codex").mkdir()
    touch = f'developer_instructions = "FROM CONFIG"\n[mcp_servers.own]\ncommand = "touch"\nargs = ["{root}/started"]\n'
    (root / ".codex" / "config.toml").write_text(touch)
    for place, name in ((".codex", "in-codex"), (".agents", "in-agents")):
        skill = root / place / "skills" / name
        write_files(skill, {"SKILL.md": SKILL.format(name=name)})
    return part


def prompt_of(team: TeamFolder, **options: object) -> str:
    with model_requests() as requests:
        assert team.run(**options).exit_code == 1
    return texts(requests[-1])


def test_agents_md_reaches_roles_but_project_settings_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with plain Codex, the outermost file comes first, and skills are listed by name.

    A role may do without, or have instructions of its own beside them. A playbook knows none of the user's.
    """
    config = {"developer_instructions": "BE BRIEF"}
    roles: dict[str, Record] = {
        "one": {"sandbox": "workspace-write"},
        "without": {"project_instructions": False},
        "own": {"codex_config": config},
    }
    team = TeamFolder(tmp_path, roles, {name: [say()] for name in roles})
    part = project(team)
    monkeypatch.setenv("CODEX_HOME", str(user_home(tmp_path, None)))
    with model_requests() as requests:
        assert team.run(workspace=part).exit_code == 1
    prompt, without, own = (texts(request) for request in requests)
    assert [mark for mark in MARKS if mark not in prompt] == []
    assert prompt.index("RULES OF THE PROJECT") < prompt.index("RULES OF THE FOLDER")
    assert f"# AGENTS.md instructions for {part}\n\n<INSTRUCTIONS>\n" in prompt
    assert [mark for mark in MARKS if mark in without] == []
    assert own.index("BE BRIEF") < own.index("RULES OF THE PROJECT")
    for each in (prompt, without, own):
        assert "FROM CONFIG" not in each
        assert "RULES OF THE USER" not in each
    assert not (team.workspace / "started").exists()


def test_agents_md_survives_a_compaction(tmp_path: Path) -> None:
    """Each visit's usage fills the context, so that Codex compacts the thread before the next one."""
    full = {"input_tokens": 5_000, "output_tokens": 10}
    keys = {"codex_config": {"model_auto_compact_token_limit": 1_000}}
    team = TeamFolder(tmp_path, {"one": keys}, {"one": [{**say(), "usage": full}, say()]})
    (team.workspace / "AGENTS.md").write_text("RULES OF THE PROJECT\n")
    with model_requests() as requests:
        assert team.run(cycles=2).exit_code == 1
    assert any("Another language model started" in texts(body) for body in requests)
    assert texts(requests[-1]).count("RULES OF THE PROJECT") == 1


def test_agents_md_reaches_a_role_in_a_copy_of_the_workspace(tmp_path: Path) -> None:
    """The copy's own file, and those above the workspace, each once."""
    team = TeamFolder(tmp_path, {"one": {"sandbox": "workspace-write"}}, {"one": [say()]})
    part = project(team)
    flow = "name: copied\nsteps:\n  - id: work\n    ask: one\n    isolate: worktree\n"
    write_files(tmp_path, {"roles/flows/copied.yaml": flow})
    with model_requests() as requests:
        team.run(workspace=part, flow="copied")
    prompt = texts(requests[-1])
    assert [prompt.count(mark) for mark in MARKS[:2]] == [1, 1]


def test_user_agents_md_counts_with_the_users_own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the user trusts the project: what that would start is still left out."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    part = project(team)
    home = user_home(tmp_path, team.workspace)
    monkeypatch.setenv("CODEX_HOME", str(home))
    playbook = Playbook.model_validate({"name": "test", "roles": {"one": [say()]}})
    with PlaybookServer(playbook) as server:
        provider = f'name = "mine"\nbase_url = "{server.base_url}"\nwire_api = "responses"\n'
        with (home / "config.toml").open("a") as config:
            config.write(f"[model_providers.mine]\n{provider}")
        prompt = prompt_of(team, workspace=part, playbook=None, config=('model_provider="mine"', 'model="m"'))
    assert [mark for mark in (*MARKS, "RULES OF THE USER") if mark not in prompt] == []
    assert "FROM CONFIG" not in prompt
    assert not (team.workspace / "started").exists()


def user_home(folder: Path, trusted: Path | None) -> Path:
    home = folder / "home"
    write_files(home, {"AGENTS.md": "RULES OF THE USER\n"})
    trust = f'[projects."{trusted}"]\ntrust_level = "trusted"\n' if trusted else ""
    (home / "config.toml").write_text(trust)
    return home
