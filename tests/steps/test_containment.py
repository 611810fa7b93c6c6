"""What a role does during a run to get out of the workspace, by command, by patch and by the files it submits.

Costs: each attempt runs in Codex's sandbox.
"""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import run
from codex_multi_role.host.user_cache import is_noted, note
from codex_multi_role.lifecycle.own_records import is_own
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace.manifest import Manifest
from codex_multi_role.workspace.removal import collect
from tests.support.teams import Record, TeamFolder, read, say, with_flow
from tests.support.tools import EDITOR, command
from tests.support.workspaces import Program, commit_all, files_of_git, write_files

pytestmark = pytest.mark.real


def team(folder: Path, steps: list[Record], files: list[Record], **role: Any) -> TeamFolder:
    made = TeamFolder(folder, {"writer": {**EDITOR, **role}}, {"writer": [{"steps": [*steps, say(files=files)]}]})
    write_files(folder, {"outside/precious.txt": "precious"})
    return made


def reasons(folder: Path) -> list[str | None]:
    return [entry.get("reason") for entry in read(folder / "writer/turn_001/applied_files.json")]


def test_link_that_a_role_made_leads_no_submitted_file_outside(tmp_path: Path) -> None:
    links = f"ln -s {tmp_path}/outside out; ln -s out twice; ln -s {tmp_path}/outside/precious.txt file; ln -s . here"
    paths = ["out/precious.txt", "out/new.txt", "twice/new.txt", "file", "here/out/new.txt", "here/fine.txt"]
    made = team(tmp_path, [command(links)], [{"path": path, "content": "x"} for path in paths])
    report = made.run()
    assert reasons(report.folder) == ["unsafe path"] * 5 + [None]
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["precious.txt"]
    assert (tmp_path / "outside/precious.txt").read_text() == "precious"
    assert (made.workspace / "fine.txt").exists()


def test_hard_link_made_by_role_is_replaced_not_written_through(tmp_path: Path) -> None:
    link = command(f"ln {tmp_path}/outside/precious.txt same.txt")
    made = team(tmp_path, [link], [{"path": "same.txt", "content": "mine"}], sandbox="danger-full-access")
    report = made.run()
    assert "same.txt" in (report.folder / "writer/turn_001/changes.patch").read_text()
    assert (made.workspace / "same.txt").read_text() == "mine"
    assert (tmp_path / "outside/precious.txt").read_text() == "precious"


def test_git_hooks_cannot_be_changed_by_role(tmp_path: Path) -> None:
    """They cannot be changed by a command, a patch or a submitted file."""
    patch = {"patch": "*** Begin Patch\n*** Add File: .git/hooks/pre-push\n+evil\n*** End Patch"}
    steps = [command("echo evil > .git/hooks/pre-commit; git config core.hooksPath evil; mv .git gone; true"), patch]
    paths = [".git/hooks/x", ".GIT/hooks/x", ".Git/config", "./.git/hooks/x", "link/hooks/x"]
    made = team(tmp_path, steps, [{"path": path, "content": "evil"} for path in paths])
    subprocess.run(["git", "init", "-q"], cwd=made.workspace, check=True)
    (made.workspace / "link").symlink_to(".git")
    before = files_of_git(made.workspace)
    report = made.run()
    assert files_of_git(made.workspace) == before
    assert reasons(report.folder) == ["unsafe path"] * 5
    assert not (made.workspace / ".GIT").exists()


def test_nested_repository_hooks_cannot_be_changed(tmp_path: Path) -> None:
    """Neither a role nor the tests can change them."""
    code = "import pathlib\n\ndef test_it():\n    pathlib.Path('sub/deep/.git/hooks/post-merge').write_text('evil')\n"
    steps = [command("echo evil > sub/deep/.git/hooks/pre-commit; echo fine > sub/deep/fine.txt")]
    made = team(tmp_path, steps, [{"path": "test_it.py", "content": code}])
    subprocess.run(["git", "init", "-q", "sub/deep"], cwd=made.workspace, check=True)
    hooks = made.workspace / "sub/deep/.git/hooks"
    before = sorted(hooks.iterdir())
    report = made.run(run_tests=True)
    assert sorted(hooks.iterdir()) == before
    assert (made.workspace / "sub/deep/fine.txt").exists()
    assert read(report.folder / "tests/001/result.json")["failed"] == 1


def test_conftest_reaches_nothing_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter2-hunter2")
    listener = socket.create_server(("127.0.0.1", 0))
    verdict = tmp_path / "runs/mine/tests/001"
    code = f"""
import os, pathlib, socket

def tried(what):
    try:
        what()
    except OSError:
        return "refused"
    return "done"

FOUND = {{
    "write": tried(lambda: pathlib.Path({str(tmp_path / "outside/x")!r}).write_text("x")),
    "link": tried(lambda: os.link({str(tmp_path / "outside/precious.txt")!r}, "same.txt")),
    "connect": tried(lambda: socket.create_connection({listener.getsockname()!r}, 2)),
    "forge": tried(lambda: pathlib.Path({str(verdict / "result.json")!r}).write_text("passed")),
    "move": tried(lambda: os.rename({str(verdict)!r}, {str(verdict)!r} + ".old")),
    "look": tried(lambda: os.listdir({str(verdict)!r})),
    "secret": os.environ.get("MY_API_KEY", "none"),
}}
pathlib.Path("found.txt").write_text(repr(FOUND))
"""
    files = [{"path": "conftest.py", "content": code}, {"path": "test_it.py", "content": "def test_it():\n    pass\n"}]
    made = team(tmp_path, [], files)
    with listener:
        report = made.run(run_tests=True, run_id="mine")
    found = (made.workspace / "found.txt").read_text()
    expected = dict.fromkeys(("write", "link", "connect", "forge", "move"), "refused")
    assert found == repr({**expected, "look": "done", "secret": "none"})
    assert read(report.folder / "tests/001/result.json")["status"] == "passed"
    assert (tmp_path / "outside/precious.txt").read_text() == "precious"


def test_project_codex_config_is_neither_writable_nor_used(tmp_path: Path) -> None:
    """Codex trusts a project whose thread may write, and starts the servers in its `.codex` unsandboxed."""
    heard = tmp_path / "heard"
    server = f'[mcp_servers.evil]\ncommand = "sh"\nargs = ["-c", "touch {heard}; sleep 60"]\n'
    patch = {"patch": "*** Begin Patch\n*** Add File: .codex/hooks.json\n+{}\n*** End Patch"}
    steps = [command("mkdir .codex .agents; echo x > .codex/config.toml; true"), patch]
    made = team(tmp_path, steps, [{"path": path, "content": server} for path in (".codex/config.toml", ".agents/x")])
    subprocess.run(["git", "init", "-q"], cwd=made.workspace, check=True)
    report = made.run()
    assert reasons(report.folder) == ["unsafe path"] * 2
    assert sorted(path.name for path in made.workspace.iterdir()) == [".git"]
    write_files(made.workspace, {".codex/config.toml": server})
    made.write_plays(writer=[say()] * 3)
    steps_ = [{"id": "here", "ask": "writer"}, {"id": "apart", "ask": "writer", "isolate": "worktree"}]
    report = with_flow(made, {"steps": steps_}).run(flow="own")
    assert report.outcome == "success"
    assert not heard.exists()
    assert not list((report.folder / ".codex").rglob("config.toml"))


def test_program_put_on_path_by_role_runs_only_in_its_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, ran = tmp_path / "workspace/.venv/bin", tmp_path / "ran"
    monkeypatch.setenv("PATH", f"{programs}:.venv/bin:{os.environ['PATH']}")
    fake = f"#!/bin/sh\necho $0 >> {ran}\n"
    plant = f"cd .venv/bin; for name in git lsb_release sh; do printf '{fake}' > $name; chmod +x $name; done; true"
    made = team(tmp_path, [command(plant)], [], protect=["kept.txt"])
    programs.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=made.workspace, check=True)
    made.plays["writer"].append({"steps": [command("command -v git > which.txt"), say()]})
    made.write_plays()
    assert made.run().outcome == "cycles_used_up"
    assert (programs / "git").exists()
    isolated = {"steps": [{"id": "apart", "ask": "writer", "isolate": "worktree"}, {"id": "here", "ask": "writer"}]}
    made.write_plays(writer=[say(), made.plays["writer"][1]])
    report = with_flow(made, isolated).run(flow="own")
    assert report.outcome == "success"
    assert not ran.exists()
    assert (made.workspace / "which.txt").read_text() == f"{programs}/git\n"


def test_what_we_load_from_a_temporary_folder_is_kept_from_roles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "lib" / "code"
    code.mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", str(code))
    tried = f"echo 1 > {code}/sitecustomize.py; mv {code.parent} {tmp_path}/away; echo 1 > {tmp_path}/free.txt; true"
    assert team(tmp_path, [command(tried)], []).run().outcome == "cycles_used_up"
    assert (tmp_path / "free.txt").exists()
    assert code.is_dir()
    assert not any(code.iterdir())


def test_what_a_repository_tells_git_to_run_is_not_run_by_us(tmp_path: Path) -> None:
    """The repository's settings name programs; a role says in `.gitattributes` for which files."""
    ran = tmp_path / "ran"
    attributes = "* filter=evil diff=evil merge=evil text ident\n"
    files = [{"path": ".gitattributes", "content": attributes}, {"path": "both.txt", "content": "role\n"}]
    made = team(tmp_path, [command("echo role > own.txt; git init -q deep; mkdir refs objects")], files)
    (made.workspace / "both.txt").write_text("mine\n")
    repository_that_runs(made.workspace, f"touch {ran}")
    steps = [
        {"id": "apart", "ask": "writer", "isolate": "worktree"},
        {"id": "here", "ask": "writer"},
        {"id": "again", "ask": "writer", "isolate": "worktree"},
    ]
    made.plays["writer"] *= 3
    made.write_plays()
    report = with_flow(made, {"steps": steps, "protect": ["kept/**"]}).run(flow="own")
    assert report.outcome == "success"
    assert "own.txt" in (report.folder / "writer/turn_001/changes.patch").read_text()
    assert not collect(report.folder / "worktrees/manifest.json", alive=False, dry_run=False)  # all were merged
    assert not ran.exists()


def test_role_writes_only_the_copy_that_it_works_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even other copies in a temporary folder, which roles can write otherwise."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    attempts = "echo x > own.txt; for each in ../../../*/copy/*/; do echo $(cd $each; pwd) $PWD > $each/seen.txt; done"
    made = team(tmp_path, [command(f"{attempts}; echo x > ../../../owner; echo x > {tmp_path}/free.txt; true")], [])
    made.plays["writer"] *= 2
    made.write_plays()
    step = {
        "id": "apart",
        "ask": "writer",
        "for_each": {"items": [1, 2], "concurrency": 1},
        "isolate": {"merge": "none"},
    }
    report = with_flow(made, {"steps": [step]}).run(flow="own")
    assert report.outcome == "success", report
    place = Manifest(report.folder / "worktrees").place
    seen = {path.read_text().split()[0]: path.read_text().split()[1] for path in place.glob("*/copy/*/seen.txt")}
    assert len(seen) == 2
    assert list(seen) == list(seen.values())
    assert (tmp_path / "free.txt").exists()
    assert (place / "owner").read_text() == str(report.folder / "worktrees")


@pytest.mark.parametrize(("place", "exists"), [("workspace", False), ("writable", True)])
def test_role_writes_nothing_that_this_user_said(
    place: str, exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither records that this machine wrote, nor trusted settings; what a person says meanwhile is kept."""
    state = tmp_path / place / "state/codex-multi-role"
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    kinds = [state / name for name in ("records", "trusted")]
    for folder in kinds if exists else ():
        folder.mkdir(mode=0o700, parents=True)
    tries = "; ".join(f"mkdir -p {folder}; echo x > {folder}/by_command" for folder in kinds)
    roots = [str(tmp_path / "writable"), *map(str, kinds)] if place == "writable" else []
    config = {"codex_config": {"sandbox_workspace_write.writable_roots": roots}}
    files = [{"path": f"state/codex-multi-role/{each.name}/by_answer", "content": "x"} for each in kinds]
    made = team(tmp_path, [command(f"{tries}; mv {state} {state}2; true")], files, **config)
    (tmp_path / place).mkdir(exist_ok=True)

    def say_meanwhile(event: Record) -> None:
        if event["type"] == "turn_started":
            note("trusted", "settings", "yes")

    report = run(made.options(), say_meanwhile)
    assert report.outcome == "cycles_used_up", report
    assert reasons(report.folder) == (["unsafe path"] * 2 if place == "workspace" else [None] * 2)
    assert not [*state.rglob("by_*"), *state.parent.glob("*2")]
    assert is_noted("trusted", "settings", "yes")
    assert is_own(RunFolder(report.folder).record(), RunFolder(report.folder))


def repository_that_runs(root: Path, program: str) -> None:
    """A repository whose every setting that names a program names ``program``.

    A filter runs it for our git only: Codex asks for the status by itself, which needs the user's filters.
    """
    hooks = root.parent / "hooks"
    events = ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-commit")
    write_files(hooks, dict.fromkeys(events, Program(f"#!/bin/sh\n{program}\n")))
    commit_all(root)
    drivers = {"filter": ("clean", "smudge", "process"), "diff": ("command", "textconv"), "merge": ("driver",)}
    named = [f"{kind}.evil.{name}" for kind, names in drivers.items() for name in names]
    others = ("core.sshCommand", "core.pager", "core.editor", "core.askPass", "diff.external", "gpg.program")
    aliases = [f"alias.{name}" for name in ("add", "write-tree", "worktree", "read-tree", "diff-tree")]
    settings = {"core.hooksPath": str(hooks), **dict.fromkeys([*named, *others, "core.fsmonitor"], program)}
    settings |= dict.fromkeys(named[:3], f'test -z "$GIT_ATTR_NOSYSTEM" || {program}')
    for name, value in {**settings, **dict.fromkeys(aliases, f"!{program}")}.items():
        subprocess.run(["git", "config", name, value], cwd=root, check=True)


def test_escalation_is_logged_whatever_was_decided(tmp_path: Path) -> None:
    """It is in the event log and in the turn's record, without secrets."""
    more = {"sandbox_permissions": "require_escalated", "justification": "it must"}
    told: dict[str, Record] = {"unsaid": {}, "no": {"auto_approve": {"commands": False}}}
    told["yes"] = {"auto_approve": {"commands": True}}
    plays: dict[str, list[Record]] = {
        name: [{"steps": [command(f"echo ghp_0123456789abcdefghij > {tmp_path}/{name}", **more), say()]}]
        for name in told
    }
    roles = {name: {**EDITOR, "sandbox": "read-only", **keys} for name, keys in told.items()}
    made = TeamFolder(tmp_path, roles, plays)
    report = made.run()
    events = made.of_type("approval")
    assert [each["decision"] for each in events] == ["decline", "decline", "accept"]
    for name, event in zip(told, events, strict=True):
        assert event["method"] == "item/commandExecution/requestApproval"
        assert f"echo [redacted] > {tmp_path}/{name}" in event["detail"]
        asked = {key: event[key] for key in ("method", "decision", "detail")}
        assert read(report.folder / f"{name}/turn_001/turn.json")["approvals"] == [asked]
        assert event["decision"] in (report.folder / f"{name}/events.jsonl").read_text()
        assert (tmp_path / name).exists() == (name == "yes")
