"""Workspaces whose files name programs and modules: none of them runs outside the sandbox when our commands work there.

All are in one workspace, on which the commands work once. Each writes its own file outside the workspace, which nothing
in the sandbox can do: what is left there shows what ran, and by which file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.console import environment
from tests.support.teams import TeamFolder, say, with_flow
from tests.support.tools import EDITOR
from tests.support.workspaces import Program, commit_all, git, write_files, write_program

PYTHON = "open({mark!r}, 'w').close()\n"
SHELL = "#!/bin/sh\ntouch {mark}\n"
PYTEST_INI = "[pytest]\naddopts = -p named_by_addopts\nmarkers = m: {mark}\n"
SETTINGS = {
    "fsmonitor": "core.fsmonitor",
    "external-diff": "diff.external",
    "pager": "core.pager",
    "editor": "core.editor",
    "ssh": "core.sshCommand",
    "askpass": "core.askPass",
    "diff-driver": "diff.evil.command",
    "text-conversion": "diff.evil.textconv",
    "merge-driver": "merge.evil.driver",
    "signing": "gpg.program",
}
"""Keys of the repository's settings that name a program."""
ALIASES = ("status", "diff", "add", "write-tree", "log", "apply")
HOOKS = (
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "pre-commit",
    "post-commit",
    "fsmonitor-watchman",
)
FILES = {
    "sitecustomize": ("sitecustomize.py", PYTHON),
    "usercustomize": ("usercustomize.py", PYTHON),
    "sitecustomize-in-src": ("src/sitecustomize.py", PYTHON),
    "json": ("json.py", PYTHON),
    "sqlite3": ("sqlite3/__init__.py", PYTHON),
    "click": ("click.py", PYTHON),
    "yaml": ("yaml/__init__.py", PYTHON),
    "own-package": ("codex_multi_role/__init__.py", PYTHON),
    "own-command": ("codex_multi_role/__main__.py", PYTHON),
    "binary-package": ("codex_cli_bin.py", PYTHON),
    "path-file": ("evil.pth", "import os; os.system('touch {mark}')\n"),
    "setup": ("setup.py", PYTHON),
    "noxfile": ("noxfile.py", PYTHON),
    "conftest": ("conftest.py", PYTHON),
    "conftest-of-tests": ("tests/conftest.py", PYTHON),
    "pytest-plugin": ("named_by_addopts.py", PYTHON),
    "pytest-ini": ("pytest.ini", PYTEST_INI),
    "test": ("tests/test_a.py", PYTHON + "\n\ndef test_a():\n    pass\n"),
    "coverage-plugin": ("coverage_plugin.py", PYTHON),
    "python-of-project": (".venv/bin/python", SHELL),
    "environment": (".venv/lib/site-packages/evil.pth", "import os; os.system('touch {mark}')\n"),
    "git-on-path": ("bin/git", SHELL),
    "python-on-path": ("bin/python3", SHELL),
    "sh-on-path": ("bin/sh", SHELL),
    "codex-on-path": ("bin/codex", SHELL),
    "bwrap-on-path": ("bin/bwrap", SHELL),
    "bwrap-of-environment": (".venv/bin/bwrap", SHELL),
    "linux-sandbox-on-path": ("bin/codex-linux-sandbox", SHELL),
    "lsb_release-on-path": ("bin/lsb_release", SHELL),
    "codex-notify": (".codex/config.toml", 'notify = ["touch", "{mark}"]\n'),
    "codex-hooks": (
        ".codex/hooks.json",
        '{{"hooks": {{"SessionStart": [{{"hooks": [{{"type": "command", "command": "touch {mark}"}}]}}]}}}}',
    ),
    "mcp-servers": (".mcp.json", '{{"mcpServers": {{"evil": {{"command": "touch", "args": ["{mark}"]}}}}}}'),
    "editor-tasks": (
        ".vscode/tasks.json",
        '{{"tasks": [{{"command": "touch {mark}", "runOptions": {{"runOn": "folderOpen"}}}}]}}',
    ),
    "direnv": (".envrc", "touch {mark}\n"),
    "profile": (".bashrc", "touch {mark}\n"),
    "dotenv": (".env", "BASH_ENV=.bashrc\nPYTHONSTARTUP=json.py\n# {mark}\n"),
    "makefile": ("Makefile", "all:\n\ttouch {mark}\n$(shell touch {mark})\n"),
    "package": ("package.json", '{{"scripts": {{"preinstall": "touch {mark}", "test": "touch {mark}"}}}}'),
    "pre-commit": (
        ".pre-commit-config.yaml",
        "repos: [{{repo: local, hooks: [{{id: x, name: x, language: system, entry: touch {mark}}}]}}]\n",
    ),
}
"""By what would run it: a file of the workspace, and its text."""
OTHERS = {
    ".coveragerc": "[run]\nplugins = coverage_plugin\n",
    ".gitattributes": "* diff=evil merge=evil text ident\n",
    ".editorconfig": "root = true\n",
    "code.py": "def one():\n    return 1\n",
}
FLOW = {
    "steps": [
        {"id": "write", "ask": "writer"},
        {"id": "apart", "ask": "writer", "isolate": "worktree"},
        {"id": "tests", "check": "tests", "allow": ["bad", "failed"]},
        {"id": "coverage", "check": "coverage", "with": {"target": "code.py"}, "allow": ["bad", "failed"]},
    ]
}
COMMANDS = (("doctor", "-c", "model_provider=ollama"), ("export", "latest", "--branch", "result"))
"""They start programs, as `run` does; every other command starts in the same way, and at most git."""


@pytest.mark.real
def test_nothing_of_a_workspace_runs_outside_the_sandbox(tmp_path: Path) -> None:
    """Each of the files leaves its mark if it is run, in a run and in all commands in the workspace."""
    marks = tmp_path / "marks"
    marks.mkdir()
    files = [{"path": "written.txt", "content": "role\n"}]
    team = TeamFolder(tmp_path, {"writer": EDITOR}, {"writer": [say(files=files)] * 2})
    with_flow(team, FLOW)
    fill(team.workspace, marks)
    path = os.pathsep.join([str(team.workspace / "bin"), str(team.workspace / ".venv/bin"), os.environ["PATH"]])
    given = ("--flow", "own", "--goal", "x", "--playbook", str(team.playbook), "--python", sys.executable)
    for arguments in (("run", *given), *COMMANDS):
        subprocess.run(
            [Path(sys.executable).parent / "codex-multi-role", *arguments],
            cwd=team.workspace,
            env=environment(PATH=path, CODEX_MULTI_ROLE_ROLES=str(team.folder / "roles")),
            capture_output=True,
            timeout=120,
            check=False,
        )
    assert yaml.safe_load((team.workspace / "runs/latest/run.json").read_text())["outcome"] == "success"
    assert [path.name for path in marks.iterdir()] == []


def fill(workspace: Path, marks: Path) -> None:
    """Write all of the files, in a repository with the settings and hooks."""
    write_files(workspace, {path: Program(text.format(mark=marks / name)) for name, (path, text) in FILES.items()})
    write_files(workspace, OTHERS)
    commit_all(workspace)
    for name in HOOKS:
        write_program(workspace / ".git/hooks" / name, SHELL.format(mark=marks / f"hook-{name}"))
    for name, key in SETTINGS.items():
        git(workspace, "config", key, f"touch {marks / name}")
    for name in ALIASES:
        git(workspace, "config", f"alias.{name}", f"!touch {marks / f'alias-{name}'}")
