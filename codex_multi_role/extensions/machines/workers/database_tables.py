"""Our tables beside DBOS's own, in a schema of their own in Postgres. All times are seconds of the server's clock."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Column, Float, Index, Integer, MetaData, String, Table, Text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement

SCHEMA = "codex_multi_role"
ENGINE_SCHEMA = "dbos"
SCHEMA_VERSION = 1
"""Incremented when the tables change; a program refuses a database of another version."""

metadata = MetaData(schema=SCHEMA)

settings = Table(
    "settings",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("value", Text, nullable=False),
)
"""``schema_version``, and the ``store`` with its identity."""

batches = Table(
    "batches",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("limits", JSON, nullable=False),
    Column("submitted_at", Float, nullable=False),
)
"""``limits``: totals that all runs of the batch share: ``turns``, ``tokens``, ``seconds``, ``cost``."""

runs = Table(
    "runs",
    metadata,
    Column("run_id", String(100), primary_key=True),
    Column("batch", String(200), index=True),
    Column("line", Integer),
    Column("goal", Text, nullable=False),
    Column("request", JSON, nullable=False),
    Column("queue", String(200), nullable=False),
    Column("priority", Integer, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("state", String(20), nullable=False),
    Column("why", Text, nullable=False, default=""),
    Column("enqueued", Boolean, nullable=False, default=False),
    Column("attempt", Integer, nullable=False, default=0),
    Column("crashes", Integer, nullable=False, default=0),
    Column("journal_version", String(20)),
    Column("worker", String(200)),
    Column("worker_identity", String(40), index=True),
    Column("manifest", Text),
    Column("record", JSON),
    Column("exit_code", Integer),
    Column("resumes_at", Float),
    Column("submitted_at", Float, nullable=False),
    Column("changed_at", Float, nullable=False),
    Index("runs_by_state", "state", "queue", "priority", "rank"),
)
"""``request``: what a run process needs to start it; no secret is ever in it. ``queue`` includes the required labels.

``journal_version``: of the first process that worked on the run; programs of another version cannot continue it.
``attempt`` numbers the processes that worked on the run: only the latest one's writes count. ``enqueued``: whether DBOS
knows that the run waits. ``record``: the latest ``run.json``. ``manifest``: the latest saved state in the store.
"""

workers = Table(
    "workers",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("identity", String(40), nullable=False, unique=True),
    Column("host", String(200), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("queues", JSON, nullable=False),
    Column("labels", JSON, nullable=False),
    Column("concurrency", Integer, nullable=False),
    Column("version", String(50), nullable=False),
    Column("journal_version", String(20), nullable=False),
    Column("is_draining", Boolean, nullable=False, default=False),
    Column("dead_after", Float, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("heartbeat_at", Float, nullable=False),
)

messages = Table(
    "messages",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("run_id", String(100), nullable=False, index=True),
    Column("kind", String(20), nullable=False),
    Column("body", JSON, nullable=False),
    Column("sent_at", Float, nullable=False),
)
"""To the process that works on a run, which deletes a message after carrying it out."""

workflows = Table(
    "workflow_status",
    MetaData(schema=ENGINE_SCHEMA),
    Column("workflow_uuid", Text, primary_key=True),
    Column("status", Text),
    Column("started_at_epoch_ms", BigInteger),
)
"""Of DBOS, only to be read: a run is ``PENDING`` from the moment a process takes it, and stays so when it has ended."""


class server_seconds(FunctionElement[float]):  # noqa: N801 - named like the functions of SQLAlchemy
    """The server's clock: the clocks of machines differ."""

    type = Float()
    inherit_cache = True


@compiles(server_seconds, "postgresql")
def _in_postgres(*_: Any, **__: Any) -> str:  # noqa: ANN401 - of SQLAlchemy
    return "extract(epoch from clock_timestamp())"


@compiles(server_seconds, "sqlite")
def _in_sqlite(*_: Any, **__: Any) -> str:  # noqa: ANN401 - of SQLAlchemy
    return "((julianday('now') - 2440587.5) * 86400.0)"
