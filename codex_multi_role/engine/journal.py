"""What a journal holds, wherever it is, and what can be wrong with it, with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from codex_multi_role.errors import TOO_MANY_FILES, StorageError
from codex_multi_role.host.processes import has_free_descriptor
from codex_multi_role.reading.json_types import Json

JOURNAL_VERSION = "2"
"""Incremented when recorded steps change their order or meaning; a journal of another version cannot be resumed."""


@dataclass(frozen=True)
class RecordedStep:
    """A recorded step: what was done, and its result."""

    name: str
    output: Json


Past = Mapping[int, RecordedStep]
"""The recorded steps of a run by their positions."""


def require_version(journal: object, version: str | None, rows: str = "") -> None:
    """Raise `StorageError` if this program cannot read a journal of that ``version``, which ends with ``rows``."""
    if version != (known := JOURNAL_VERSION + rows):
        raise StorageError(
            f"the journal {journal} has version {version or 'unknown'}, this program writes {known}",
            "Use the version of codex-multi-role that `run.json` names.",
        )


RESUME = "Then resume the run."
TRY_AGAIN = "Then try again."
GENERAL = "Free some space or fix the database."
HINTS = {
    "unable to open database file": (  # a missing descriptor may be free again when we look for one
        "If its folder is writable, too many files may be open: raise the limit (`ulimit -n`)."
    ),
    r'password authentication|no password supplied|no pg_hba\.conf entry|role ".+" does not exist': (
        "Check the user in the database URL, and its password in PGPASSWORD or ~/.pgpass."
    ),
    r"relation .+ does not exist": (
        "Restore the database from a copy, or start another run: this database contains no journal."
    ),
    r"database .+ does not exist": ("Create the database, or let its user create it: `ALTER ROLE … CREATEDB`."),
    r"permission denied|must be owner": (
        "Give the user the right to create the schema and its tables: `GRANT CREATE ON DATABASE … TO …`. "
        "The schemas `dbos` and `codex_multi_role` of another user need grants on all of their tables."
    ),
    r"too many (clients|connections)|connection slots": (
        "Raise `max_connections` of the server, or work on fewer runs at once."
    ),
    r"read-only": "Use the address of the primary server: this one is read-only.",
    r"certificate|SSL|TLS|sslmode": (
        "Check `sslmode` and `sslrootcert` in the database URL: the server's certificate must be signed by that "
        "authority and name that host."
    ),
    (
        r"refused|closed the connection|No such file|time(out|d out)|resolve host|to host|unreachable|"
        r"starting|shutting|terminating"
    ): "Check that the server runs, and that this machine reaches it at that address.",
}
"""What to do about a message of SQLite, of libpq or of a server that speaks English: opening gives no error code."""


def in_words(error: BaseException) -> str:
    """The first line of the database's own error message, without what SQLAlchemy and psycopg add around it."""
    text = str(getattr(error, "orig", None) or error).partition("\n")[0]
    return re.sub(r"^connection (failed|is bad): ", "", " ".join(text.split()))


def journal_error(happened: str, error: BaseException, then: str = RESUME) -> StorageError:
    """A failure of the journal itself, with a hint for the user that ends with ``then``."""
    problem = in_words(error)
    known = (hint for pattern, hint in HINTS.items() if re.search(pattern, problem))
    hint = f"{next(known, GENERAL)} {then}"
    return StorageError(f"{happened}: {problem}", hint if has_free_descriptor() else TOO_MANY_FILES)
