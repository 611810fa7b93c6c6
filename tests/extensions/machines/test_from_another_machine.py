"""A team of machines in small: one has the worker, the other only the address of a real Postgres.

Only here the commands are given while a worker works.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.console import Completed, console_process
from tests.support.reviews import REVIEW
from tests.support.shared_runs import SharedRuns
from tests.support.teams import WRITER, TeamFolder, say, with_flow

pytestmark = pytest.mark.long
FILE = {**say("it"), "json": {"summary": "it", "files": [{"path": "a.txt", "content": "made\n"}]}}


@pytest.fixture
def shared(tmp_path: Path, database_url: str) -> Iterator[SharedRuns]:
    shared = SharedRuns(tmp_path, database_url)
    yield shared
    shared.close()


def elsewhere(shared: SharedRuns, *arguments: str) -> Completed:
    (folder := shared.folder / "elsewhere").mkdir(exist_ok=True)
    variables = {"CODEX_MULTI_ROLE_DATABASE_URL": shared.url, "XDG_CACHE_HOME": str(folder / "cache")}
    return console_process(*arguments, folder=folder, variables=variables)


@pytest.mark.extensions
def test_run_is_watched_answered_and_taken_home(tmp_path: Path, shared: SharedRuns) -> None:
    steps = [{"id": "make", "ask": "one"}, {**REVIEW, "review": {"question": "Ship it?"}}]
    team = with_flow(TeamFolder(tmp_path / "team", {"one": WRITER}, {"one": [FILE]}), {"steps": steps})
    subprocess.run(["git", "init", "-q"], cwd=team.workspace, check=True)
    shared.submit(team.options(flow="own"), "first")
    assert "queue      goals, for " in elsewhere(shared, "show").stdout
    shared.start("anna")
    watched = elsewhere(shared, "watch", "--plain")
    assert (watched.returncode, "review ok.1: Ship it?" in watched.stderr) == (4, True)
    for decision in ("approve", "reject"):
        assert re.search(f"^  [a-z ]+ codex-multi-role {decision} first .*--database-url", watched.stderr, re.MULTILINE)
    assert elsewhere(shared, "approve", "--comment", "good").returncode == 0
    again = elsewhere(shared, "watch", "--json")
    assert (again.returncode, json.loads(again.stdout.splitlines()[-1])["outcome"]) == (0, "shipped")
    (checkout := tmp_path / "checkout").mkdir()
    assert elsewhere(shared, "apply", "--to", str(checkout)).stdout == "changed a.txt\n"
    assert (checkout / "a.txt").read_text() == "made\n"
    (run,) = json.loads(elsewhere(shared, "runs", "--json").stdout)
    assert (run["status"], run["totals"]["turns"], run["shared"]["attempt"]) == ("succeeded", 1, 2)
