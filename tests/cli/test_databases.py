"""Commands leave no connection to the shared database behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import console
from tests.support.databases import execute
from tests.support.processes import wait_until

OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@pytest.mark.sample("workers", "queues")
@pytest.mark.parametrize("command", [("workers",), ("queues",), ("runs",), ("watch", "--all")])
def test_command_closes_its_connections(command: tuple[str, ...], database_url: str, tmp_path: Path) -> None:
    assert console("queues", "--database-url", database_url, folder=tmp_path).returncode == 0
    done = console(*command, "--database-url", database_url, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: execute(database_url, OTHERS) == [(0,)], "the end of its connections")
