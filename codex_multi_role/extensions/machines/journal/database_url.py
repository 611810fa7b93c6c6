"""The address of a database, as `--database-url` gives it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from codex_multi_role.errors import INSTALL, UsageError, how_to_add

FLAG = "--database-url"
POSTGRES_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
SQLITE_SCHEME = "sqlite"
SQLITE_SUFFIXES = ("", "-wal", "-shm", ".lock")
"""Of the files beside a database in a file, the last one ours."""
FORM = "A database URL is postgresql://USER@HOST:PORT/DATABASE, for example postgresql://runs@db.example.com/runs."
OPTIONS = (
    "See https://www.postgresql.org/docs/current/libpq-connect.html for the options, such as `?sslmode=verify-full`."
)
SECRET_OPTIONS = frozenset({"password", "sslpassword"})
TIMEOUTS = {
    "connect_timeout": "10",  # seconds, as the next ones
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",  # milliseconds
}
"""When a server counts as lost, by libpq's names. The system's own defaults are up to two hours."""


def check_database_url(url: str) -> None:
    """Raise `UsageError` for a URL without a database, of another kind of database, or with a password.

    Also if the packages for databases are missing: otherwise a run would learn that only when it has started.
    """
    if find_spec("dbos") is None:
        raise UsageError("a database needs dbos, which is not installed", f"{INSTALL}{how_to_add('machines')}")
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for one that is not a number
    except ValueError as error:
        raise UsageError(f"invalid database URL: {error}", FORM) from error
    if parts.password or SECRET_OPTIONS & parse_qs(parts.query).keys():
        message = "the database URL contains a password; it would be visible in run.json and the process list"
        raise UsageError(message, "Remove it from the URL and set PGPASSWORD, or use ~/.pgpass.")
    if parts.scheme not in (*POSTGRES_SCHEMES, SQLITE_SCHEME):
        kind = f'is of the kind "{parts.scheme}"' if parts.scheme else "has no scheme"
        raise UsageError(f"the database URL {kind}, but only Postgres databases are supported", FORM)
    if not parts.path.strip("/"):
        raise UsageError("the database URL names no database", FORM)
    if parts.scheme != SQLITE_SCHEME:
        _check_options(url)


def _check_options(url: str) -> None:
    """Raise `UsageError` for an option that libpq does not have."""
    from psycopg import ProgrammingError  # imported here: most runs use no Postgres
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(f"postgresql:{url.partition(':')[2]}")
    except ProgrammingError as error:
        raise UsageError(f"invalid database URL: {str(error).strip()}", OPTIONS) from error


def files_of_database(url: str) -> list[Path]:
    """The existing files of a SQLite database; empty for a server."""
    parts = urlsplit(url)
    if parts.scheme != SQLITE_SCHEME:
        return []
    path = Path(unquote(parts.path.removeprefix("/"))).resolve()
    return [each for suffix in SQLITE_SUFFIXES if (each := Path(f"{path}{suffix}")).exists()]


def with_timeouts(url: str) -> str:
    """A Postgres URL with each of the `TIMEOUTS` that it does not set itself; any other URL unchanged."""
    parts = urlsplit(url)
    if parts.scheme not in POSTGRES_SCHEMES:
        return url
    given = parse_qs(parts.query)
    missing = urlencode({name: value for name, value in TIMEOUTS.items() if name not in given})
    return f"{url}{'&' if '?' in url else '?'}{missing}" if missing else url


def place_of(url: str | None) -> list[str]:
    """The option that names the database, as it is typed."""
    return [FLAG, url] if url else []
