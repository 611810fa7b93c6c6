"""What people decide on any machine, on its way to the process that works on the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import sqlalchemy as sa

from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.database_tables import messages, server_seconds
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Answer, Cancellations, Questions, RunFolder
from codex_multi_role.run_folder.items import Cancellation

ANSWER, CANCEL, STOP, PAUSE = "answer", "cancel", "stop", "pause"
"""The bodies: ``{key, answer}`` to a question, ``{unit, cancellation}`` of a task, ``{}`` to stop or pause the run."""


def send_answer(database: Database, run_id: str, key: str, answer: Answer) -> None:
    send(database, run_id, ANSWER, {"key": key, "answer": asdict(answer)})


def send_cancellation(database: Database, run_id: str, unit: str, cancellation: Cancellation) -> None:
    send(database, run_id, CANCEL, {"unit": unit, "cancellation": asdict(cancellation)})


def send(database: Database, run_id: str, kind: str, body: Json | None = None) -> None:
    row = {"run_id": run_id, "kind": kind, "body": body or {}, "sent_at": server_seconds()}
    with database.transaction() as connection:
        connection.execute(sa.insert(messages).values(row))


def receive(database: Database, folder: RunFolder) -> set[str]:
    """Carry out the run's messages in its folder; returns which of `STOP` and `PAUSE` are requested of its process.

    A message is deleted once it is carried out; carrying one out twice changes nothing.
    """
    found = _sent(database, folder.run_id)
    for message in found:
        _carry_out(folder, message["kind"], message["body"])
    if found:
        done = sa.delete(messages).where(messages.c.number.in_([message["number"] for message in found]))
        with database.transaction() as connection:
            connection.execute(done)
    return {message["kind"] for message in found} & {STOP, PAUSE}


def carry_out_early(database: Database, folder: RunFolder) -> None:
    """Carry out the run's messages in a copy of its folder; the process that works on the run still receives them."""
    for message in _sent(database, folder.run_id):
        _carry_out(folder, message["kind"], message["body"])


def answered_runs(database: Database) -> set[str]:
    """The runs with an answer that no process has received yet."""
    with database.transaction() as connection:
        return set(connection.scalars(sa.select(messages.c.run_id).where(messages.c.kind == ANSWER)))


def forget_stops(database: Database, run_id: str) -> None:
    """Delete requests to stop or pause the run that no process has received: it is resumed now."""
    with database.transaction() as connection:
        connection.execute(sa.delete(messages).where(messages.c.run_id == run_id, messages.c.kind.in_((STOP, PAUSE))))


def _sent(database: Database, run_id: str) -> Sequence[sa.RowMapping]:
    chosen = sa.select(messages).where(messages.c.run_id == run_id).order_by(messages.c.number)
    with database.transaction() as connection:
        return connection.execute(chosen).mappings().all()


def _carry_out(folder: RunFolder, kind: str, body: Json) -> None:
    if kind == ANSWER and Questions(folder.path).find(body["key"]) is not None:
        Questions(folder.path).settle(body["key"], Answer(**body["answer"]))
    elif kind == CANCEL:
        Cancellations(folder.path).record(body["unit"], Cancellation(**body["cancellation"]))
