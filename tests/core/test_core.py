"""Everything but the systems works without them, and while they are broken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.without_systems import SYSTEMS, copy_without_systems, environment

SECONDS = 60.0
CYCLES = ("--goal", "convert numbers", "--cycles", "3", "--playbook", "roman-numerals", "--json")
BROKEN = "raise RuntimeError('broken system')\n"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def core(tmp_path: Path) -> Path:
    return copy_without_systems(tmp_path / "core")


@pytest.fixture
def run(core: Path, tmp_path: Path) -> Run:
    """Run the command of the copy in an empty workspace."""
    (workspace := tmp_path / "workspace").mkdir()

    def started(*arguments: str, installed: bool = False) -> subprocess.CompletedProcess[str]:
        if installed:
            next(core.glob("*.dist-info")).rename(tmp_path / "metadata")
        return subprocess.run(
            [sys.executable, "-m", "codex_multi_role", *arguments],
            cwd=workspace,
            env=environment(core),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    return started


def test_cycles_reach_their_goal_without_systems(run: Run) -> None:
    done = run(*CYCLES)
    assert done.returncode == 0, done
    assert '"outcome": "done"' in done.stdout


@pytest.mark.parametrize("command", ["flows list", "flows validate cycles", "roles validate"])
def test_definitions_of_the_core_are_read_without_systems(run: Run, command: str) -> None:
    done = run(*command.split())
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout


@pytest.mark.parametrize(("flow", "part"), [("testgen", "check"), ("plan-solve", "tool")])
def test_flow_of_a_missing_system_is_refused(run: Run, flow: str, part: str) -> None:
    done = run("flows", "validate", flow)
    assert done.returncode == 2
    assert f'there is no {part} "' in done.stderr, done
    assert f"Installing codex-multi-role registers more {part}s" in done.stderr
    assert "pip install -e ." in done.stderr


def test_broken_systems_stop_nothing_but_their_flows(run: Run, core: Path) -> None:
    (core / SYSTEMS).mkdir()
    (core / SYSTEMS / "__init__.py").write_text(BROKEN)
    done = run(*CYCLES, installed=True)
    assert done.returncode == 0, done
    refused = run("flows", "validate", "testgen")
    assert refused.returncode == 2
    assert "does not load: broken system" in refused.stderr
