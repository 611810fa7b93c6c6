"""A machine on which Codex's sandbox does not work: nothing is paid for tests that cannot run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.errors import CodexUnavailable, ExitCode
from codex_multi_role.lifecycle import sandbox_probe
from codex_multi_role.lifecycle.sandbox_probe import require_sandbox
from tests.support.catalogs import raised
from tests.support.console import Completed, completed, environment
from tests.support.teams import WRITER, TeamFolder, say, with_flow
from tests.support.workspaces import write_program

pytestmark = pytest.mark.usefixtures("scripted_codex")

FAILURE = "bwrap: setting up uid map: Permission denied"
"""What the sandbox prints where AppArmor restricts user namespaces."""
WITHOUT_NAMESPACES = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'


def without_sandbox(folder: Path, then: str = f"echo '{FAILURE}' >&2; exit 1") -> Path:
    """A Codex binary whose sandbox fails, as on a machine without user namespaces; it counts the attempts."""
    unless = f'[ "$1" = sandbox ] || exec {find_codex(None, {})} "$@"'
    return write_program(folder / "codex", f"#!/bin/sh\n{unless}\necho >> {folder}/attempts\n{then}\n")


def attempts(folder: Path) -> int:
    file = folder / "attempts"
    return len(file.read_text().splitlines()) if file.exists() else 0


def team_with(folder: Path, *steps: dict[str, Any], role: dict[str, Any] = WRITER) -> TeamFolder:
    team = TeamFolder(folder, {"one": role}, {"one": [say()] * 3})
    return with_flow(team, {"steps": [{"id": "ask", "ask": "one"}, *steps]})


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        pytest.param([], {"run_tests": True}, id="tests-after-turns"),
        pytest.param([{"id": "t", "check": "tests"}], {}, id="check-tests"),
        pytest.param([{"id": "c", "check": "command", "with": {"argv": ["true"]}}], {}, id="check-command"),
        pytest.param(
            [{"id": "c", "check": "flaky", "with": {"runs": 2}}], {}, id="check-flaky", marks=pytest.mark.extensions
        ),
    ],
)
def test_run_that_needs_the_sandbox_ends_before_its_first_turn(
    tmp_path: Path, steps: list[dict[str, Any]], options: dict[str, Any]
) -> None:
    team = team_with(tmp_path, *steps)
    report = team.run(flow="own", codex_bin=without_sandbox(tmp_path), **options)
    assert (report.exit_code, report.outcome) == (ExitCode.WRONG_USAGE, "codex_unavailable")
    assert report.reason == f"Codex's sandbox does not work on this machine: {FAILURE}"
    assert "user namespaces" in report.hint
    assert "--no-test-sandbox" in report.hint
    assert not team.of_type("turn_started")
    assert "turn/start" not in (report.folder / "one/events.jsonl").read_text()
    assert attempts(tmp_path) == 1


@pytest.mark.parametrize(
    ("steps", "role", "options"),
    [
        pytest.param([], WRITER, {}, id="no-tests"),
        pytest.param([], WRITER, {"run_tests": True, "test_sandbox": False}, id="no-test-sandbox"),
        pytest.param([], {}, {"run_tests": True}, id="nobody-writes"),
        pytest.param(
            [{"id": "c", "check": "command", "with": {"argv": ["true"], "sandbox": False}}],
            WRITER,
            {},
            id="unsandboxed",
        ),
    ],
)
def test_run_that_needs_no_sandbox_does_not_try_it(
    tmp_path: Path, steps: list[dict[str, Any]], role: dict[str, Any], options: dict[str, Any]
) -> None:
    team = team_with(tmp_path, *steps, role=role)
    report = team.run(flow="own", codex_bin=without_sandbox(tmp_path), **options)
    assert report.exit_code == 0, report.reason
    assert attempts(tmp_path) == 0


def test_run_can_be_resumed_once_the_sandbox_works(tmp_path: Path) -> None:
    team = team_with(tmp_path)
    (team.workspace / "test_a.py").write_text("def test_a():\n    pass\n")
    codex = without_sandbox(tmp_path)
    assert team.run(flow="own", codex_bin=codex, run_tests=True).exit_code == ExitCode.WRONG_USAGE
    without_sandbox(tmp_path, f'exec {find_codex(None, {})} "$@"')
    report = team.resume()
    assert (report.exit_code, report.outcome) == (0, "success"), report.reason


def test_sandbox_is_named_and_not_the_python_that_cannot_start_in_it(tmp_path: Path) -> None:
    team = team_with(tmp_path)
    python = tmp_path / "environment/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    with pytest.raises(CodexUnavailable, match=FAILURE):
        team.run(flow="own", codex_bin=without_sandbox(tmp_path), run_tests=True, python=python)
    assert not team.runs.exists()


@pytest.mark.extensions
def test_batch_ends_before_its_first_goal(tmp_path: Path) -> None:
    from tests.support.batches import batch, one_role, write_goals

    team = one_role(tmp_path)
    team.roles["one"] |= WRITER
    team.write_catalog()
    write_goals(team, {"id": "a", "goal": "first"}, {"id": "b", "goal": "second"})
    done = batch(team, "--run-tests", "--codex-bin", str(without_sandbox(tmp_path)))
    assert done.returncode == ExitCode.WRONG_USAGE
    assert f"error: Codex's sandbox does not work on this machine: {FAILURE}" in done.stderr
    assert not list(team.runs.glob("*/run.json"))


@pytest.mark.parametrize(
    ("then", "problem"),
    [
        ("exit 3", "exit code 3"),
        ("echo WARNING: no aliases; echo 'bwrap: No such file' >&2; exit 1", "bwrap: No such file"),
        ("kill -9 $$", "signal 9 (Killed)"),
        ("sleep 60", "no answer in 0.2 s"),
        (
            "printf 'Error: unavailable (os error 11)\\n\\nStack backtrace:\\n 0: <unknown>' >&2; exit 1",
            "Error: unavailable (os error 11)",
        ),
        ("printf 'bwrap: cut off' >&2; exit 1", "bwrap: cut off"),
    ],
)
def test_reason_is_the_last_line_or_how_it_ended(
    tmp_path: Path, then: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_probe, "PROBE_SECONDS", 0.2 if "sleep" in then else 60.0)
    error = raised(CodexUnavailable, require_sandbox, without_sandbox(tmp_path, then))
    assert str(error) == f"Codex's sandbox does not work on this machine: {problem}"


def test_binary_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    with pytest.raises(CodexUnavailable, match=f"{tmp_path}: "):
        require_sandbox(tmp_path)


def test_sandbox_that_works_is_tried_once_and_one_that_fails_again(tmp_path: Path) -> None:
    codex = without_sandbox(tmp_path)
    for _ in range(2):
        with pytest.raises(CodexUnavailable):
            require_sandbox(codex)
    without_sandbox(tmp_path, "exit 0")
    for _ in range(3):
        require_sandbox(codex)
    assert attempts(tmp_path) == 3


@pytest.mark.parametrize(
    ("parameters", "advice"),
    [
        (
            {"kernel.apparmor_restrict_unprivileged_userns": "1", "user.max_user_namespaces": "96365"},
            "`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`. ",
        ),
        (
            {"kernel.unprivileged_userns_clone": "0", "user.max_user_namespaces": "0"},
            "`sudo sysctl -w kernel.unprivileged_userns_clone=1` and `sudo sysctl -w user.max_user_namespaces=15000`. ",
        ),
        ({}, "on the host, or with `docker run --security-opt seccomp=unconfined …`. "),
    ],
)
def test_hint_names_what_forbids_user_namespaces(
    tmp_path: Path, parameters: dict[str, str], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_probe, "_parameter", lambda name: parameters.get(name, ""))
    assert raised(CodexUnavailable, require_sandbox, without_sandbox(tmp_path)).hint == (
        f"Allow unprivileged user namespaces: {advice}Or run tests and checks without the sandbox: --no-test-sandbox."
    )


@pytest.mark.extensions
@pytest.mark.usefixtures("real_codex")
def test_doctor_and_run_agree_where_no_user_namespace_can_be_created(tmp_path: Path) -> None:
    """The real binary, in a user namespace that allows no further ones: each is a process that imports all it needs."""
    program = ["unshare", "-Ur", "sh", "-c", WITHOUT_NAMESPACES, "sh"]
    if sys.platform != "linux" or subprocess.run([*program, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespace can be created here")
    ours = [*program, sys.executable, "-P", "-m", "codex_multi_role"]
    variables = {**environment(), "HOME": os.environ["HOME"]}

    def done(*arguments: str) -> Completed:
        return completed([*ours, *arguments], tmp_path, variables)

    looked = done("doctor", "-c", "model_provider=ollama", "--json")
    [finding] = [each for each in json.loads(looked.stdout) if each["name"] == "sandbox"]
    run = done("--playbook", "roman-numerals")
    assert (looked.returncode, run.returncode, finding["ok"]) == (2, 2, False)
    assert "bwrap: " in finding["detail"]
    assert "`sudo sysctl -w user.max_user_namespaces=15000`" in finding["advice"]
    assert finding["detail"] in run.stderr
    assert finding["advice"] in run.stderr
    assert "turns    0 in" in run.stderr
