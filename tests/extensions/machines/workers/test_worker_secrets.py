"""What a worker leaves on its machine, in the store and in the database is private, and no queue contains a secret."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_multi_role.extensions.machines.workers.queued_runs import RunState
from tests.support.databases import execute
from tests.support.placed_calls import calling
from tests.support.shared_runs import SharedRuns
from tests.support.teams import NEVER, WRITER, TeamFolder, say

TOKEN = "b7f3a9d1c5e8f2a4"
QUEUES = ("codex_multi_role.runs", "codex_multi_role.messages", "dbos.workflow_status")


@pytest.fixture
def shared(tmp_path: Path, database_url: str) -> Iterator[SharedRuns]:
    shared = SharedRuns(tmp_path, database_url)
    yield shared
    shared.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def require_private(shared: SharedRuns, worker: str) -> None:
    own = shared.folder / "machines" / worker / "workers" / worker
    assert mode(own) == mode(own / "runs/first") == 0o700
    stored = list((shared.folder / "store").rglob("*"))
    assert {mode(path) for path in stored if path.is_dir()} == {0o700}
    assert {mode(path) for path in stored if path.is_file()} == {0o600}


@pytest.mark.long
def test_folders_of_workers_and_store_are_private(tmp_path: Path, shared: SharedRuns) -> None:
    """Also where a run is continued."""
    team = TeamFolder(tmp_path / "team", {"one": WRITER, "two": {}}, {"one": [say()], "two": [NEVER] * 2})
    shared.submit(team.options(), "first")
    for worker in "ab":
        shared.start(worker)
        run_folder = tmp_path / "machines" / worker / "workers" / worker / "runs/first"
        shared.wait(lambda: list(run_folder.glob("two/turn_*")))  # noqa: B023 - called in this round
        require_private(shared, worker)
        shared.kill(worker)


@pytest.mark.long
def test_secret_that_a_model_names_is_in_no_queue(
    tmp_path: Path, shared: SharedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither as the item of a fan-out on workers, which is an input of another run, nor in the record of its run."""
    monkeypatch.setenv("DEPLOY_TOKEN", TOKEN)
    team = calling(tmp_path / "team", "{{ steps.plan.names }}", max_items=3)
    team.plays["last"] = [say(f"the token is {TOKEN}", names=[TOKEN])]
    team.write_plays()
    flow = team.folder / "roles/flows/own.yaml"
    flow.write_text(flow.read_text().replace("steps:\n", "steps:\n- id: plan\n  ask: last\n", 1))
    shared.submit(team.options(flow="own"), "first")
    shared.start("a")
    shared.wait_for(RunState.ENDED, "first")
    run = shared.run("first")
    assert run.exit_code == 2
    assert '"inputs" contains the value of a secret environment variable' in run.why
    for table in QUEUES:
        assert TOKEN not in str(execute(shared.url, f"SELECT * FROM {table}")), table
