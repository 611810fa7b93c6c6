from __future__ import annotations

import os
from pathlib import Path

import pytest

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.codex.permissions import PROFILE, WriteAccess, has_own_rules, profile, sandboxed
from codex_multi_role.codex.running_turn import Observed
from codex_multi_role.workspace import run_command
from tests.support.codex import ANSWER, PATIENT, Harness, request
from tests.support.workspaces import write_program

TABLE = """[sandbox_workspace_write]
writable_roots = ["/a"]
network_access = true
"""


@pytest.mark.parametrize(
    ("config", "settings", "expected"),
    [
        ("", (), WriteAccess()),
        ("broken = ", (), WriteAccess()),
        (TABLE, (), WriteAccess(("/a",), network_access=True)),
        (TABLE, ("sandbox_workspace_write.network_access=false",), WriteAccess(("/a",))),
        ("", ('sandbox_workspace_write={writable_roots=["/b"]}', "model=x"), WriteAccess(("/b",))),
        ("", ("sandbox_workspace_write.exclude_slash_tmp=true",), WriteAccess(exclude_slash_tmp=True)),
        # A whole table replaces what came before it, as in Codex.
        ("", ("sandbox_workspace_write.network_access=true", "sandbox_workspace_write={}"), WriteAccess()),
    ],
)
def test_users_own_settings_of_workspace_write_hold(
    tmp_path: Path, config: str, settings: tuple[str, ...], expected: WriteAccess
) -> None:
    (tmp_path / "config.toml").write_text(config)
    assert WriteAccess.of(settings, tmp_path) == expected
    assert ('":slash_tmp"="write"' in profile(expected, ())[0].replace(" ", "")) is not expected.exclude_slash_tmp


def test_settings_that_say_it_themselves_are_known() -> None:
    assert has_own_rules(('permissions.mine.filesystem={":root"="read"}',))
    assert has_own_rules(("default_permissions=mine",))
    assert not has_own_rules(("sandbox_workspace_write.network_access=true", 'model="o3"'))


@pytest.mark.real
@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            "",
            marks=pytest.mark.long,
        ),
        'sandbox_mode = "read-only"\n',
    ],
)
def test_protected_folder_is_read_only_except_workspace_copies(harness: Harness, config: str) -> None:
    """The folder is protected wherever it is. A copy of the workspace inside it stays writable."""
    runs, extra = harness.workspace / "runs", harness.folder / "extra"
    copy = runs / "copies" / "one"
    copy.mkdir(parents=True)
    extra.mkdir()
    (harness.folder / "home").mkdir()
    (harness.folder / "home/config.toml").write_text(config)
    command = f"touch here.txt; touch {runs}/forged.txt; touch {extra}/there.txt"
    entry = {"steps": [{"call": "exec_command", "arguments": {"cmd": command}}, ANSWER]}
    client = harness.client(
        [entry],
        sandbox="workspace-write",
        approval_policy="on-request",
        settings=profile(WriteAccess((str(extra),), exclude_slash_tmp=True, exclude_tmpdir_env_var=True), (runs,)),
        permissions=PROFILE,
    )
    for folder in (harness.workspace, copy):
        client.use_thread(None, str(folder))
        assert client.run_turn(request(), PATIENT, nobody).status == "completed"
        assert (folder / "here.txt").exists()
    assert (extra / "there.txt").exists()
    assert not (runs / "forged.txt").exists()


def nobody(_: Observed) -> None:
    """Looks."""


@pytest.mark.real
@pytest.mark.parametrize("program", ["bwrap", "sh", "env", "codex-linux-sandbox"])
def test_sandbox_itself_is_not_taken_from_the_path_of_its_command(tmp_path: Path, program: str) -> None:
    """A role can write into the environment in the workspace, which is active for tests."""
    work, copy, mark = (tmp_path / name for name in ("work", "copy", "mark"))
    copy.mkdir()
    places = work / ".venv/bin"
    write_program(places / program, f"#!/bin/sh\ntouch {mark}\n")
    environment = {**os.environ, "PATH": f"{places}:/usr/bin:/bin", "CODEX_HOME": str(tmp_path)}
    argv = sandboxed(find_codex(None, {}), ["/usr/bin/env"], copy)
    done = run_command(argv, copy, environment, 60.0, separate_errors=True)
    assert done.returncode == 0, done.errors
    assert not mark.exists()
    variables = dict(line.split("=", 1) for line in done.output.splitlines() if "=" in line)
    assert variables["PATH"].endswith(f"{places}:/usr/bin:/bin")
    assert "INNER_PATH" not in variables
