"""Everything but the extensions works without them, and while they are broken."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.core.commands import Ends, run_commands
from tests.core.without_extensions import EXTENSIONS, copy_without_extensions, environment

pytestmark = pytest.mark.real

CYCLES = "--goal numbers --playbook roman-numerals --json"
ONE_CYCLE = f"{CYCLES} --cycles 1 --no-run-tests"
DEFINITIONS = ("flows list", "flows validate cycles", "roles validate")
BROKEN = "raise RuntimeError('broken system')\n"
Run = Callable[..., Ends]


@pytest.fixture
def core(tmp_path: Path) -> Path:
    return copy_without_extensions(tmp_path / "core")


@pytest.fixture
def run(core: Path, tmp_path: Path) -> Run:
    """Run commands of the copy in an empty workspace, one after another in one process: code, stdout and stderr."""
    (workspace := tmp_path / "workspace").mkdir()
    return partial(run_commands, workspace, env=environment(core))


def test_core_works_without_extensions(run: Run) -> None:
    """A run works, the definitions of the core are read, and what needs a missing extension is refused."""
    (code, events, said), *read, flow, playbook, option = run(
        ONE_CYCLE, *DEFINITIONS, "flows validate testgen", "--playbook circle", f"{ONE_CYCLE} --record x.ndjson"
    )
    assert code == 1, said
    assert '"outcome": "cycles_used_up"' in events
    for code, stdout, stderr in read:
        assert (code, stderr) == (0, "")
        assert stdout
    assert 'unknown option "--record"' in option[2]
    for part, (code, _, stderr) in (("flow", flow), ("playbook", playbook)):
        assert code == 2
        assert f'unknown {part} "' in stderr
        assert f"Installing codex-multi-role registers more {part}s" in stderr
        assert "pip install -e ." in stderr


@pytest.mark.long
def test_broken_extensions_stop_nothing_but_their_flows(run: Run, core: Path, tmp_path: Path) -> None:
    """No short test has extensions that cannot be imported."""
    (core / EXTENSIONS).mkdir()
    (core / EXTENSIONS / "__init__.py").write_text(BROKEN)
    next(core.glob("*.dist-info")).rename(tmp_path / "metadata")  # the installed one has their entry points
    (code, events, said), (refused, _, words) = run(ONE_CYCLE, "flows validate testgen")
    assert code == 1, said
    assert '"outcome": "cycles_used_up"' in events
    assert refused == 2
    assert "does not load: broken system" in words
