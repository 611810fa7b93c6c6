"""What a database says is wrong, in words, and what to do about it."""

from __future__ import annotations

import re

from codex_multi_role.engine.journal_slots import RESUME, journal_error
from codex_multi_role.errors import StorageError

HINTS = {
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
"""What to do about a message of libpq or of a server that speaks English: opening gives no error code."""


def in_words(error: BaseException) -> str:
    """The first line of the database's own error message, without what SQLAlchemy and psycopg add around it."""
    text = str(getattr(error, "orig", None) or error).partition("\n")[0]
    return re.sub(r"^connection (failed|is bad): ", "", " ".join(text.split()))


def database_error(happened: str, error: BaseException, then: str = RESUME) -> StorageError:
    """A failure of the database, with a hint for the user that ends with ``then``."""
    problem = in_words(error)
    return journal_error(
        happened, problem, then, *(hint for pattern, hint in HINTS.items() if re.search(pattern, problem))
    )
