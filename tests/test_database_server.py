"""The PostgreSQL servers of the tests: of the system or of a package, and nothing is left of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.databases import execute, new_database, packaged_programs, running_server
from tests.support.processes import wait_until

HOLD = """
import time
from tests.support.databases import running_server
with running_server() as server:
    print(server.folder, (server.folder / "data/postmaster.pid").read_text().split()[0], flush=True)
    time.sleep(60)
"""
TOP = Path(__file__).parents[1]


@pytest.mark.long
def test_packaged_server_keeps_its_data_over_a_restart() -> None:
    with running_server(programs=packaged_programs()) as server, new_database(server.url) as url:
        execute(url, "CREATE TABLE kept AS SELECT 7 AS number")
        server.restart()
        assert execute(url, "SELECT number FROM kept") == [(7,)]
    assert not server.folder.exists()


@pytest.mark.long
def test_server_ends_with_its_killed_test_process() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD], cwd=TOP, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder, pid = process.stdout.readline().split()
        process.kill()
    wait_until(lambda: not psutil.pid_exists(int(pid)) and not Path(folder).exists(), "the server's end")
