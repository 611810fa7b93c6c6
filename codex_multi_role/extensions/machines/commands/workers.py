"""``worker`` and ``queues``: take part in the runs of a database, and see who works on what."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from codex_multi_role.cli.options import JSON, QUIET, RUNS_DIR, command
from codex_multi_role.cli.output import put_json, put_table, say
from codex_multi_role.cli.setting import Setting, not_empty
from codex_multi_role.cli.tables import Column
from codex_multi_role.extensions.machines.commands.options import DATABASE_URL, STORE
from codex_multi_role.extensions.machines.journal.database_url import place_of
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.host.programs import require_unsteered
from codex_multi_role.presentation.wording import duration
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder.folder import command_line

if TYPE_CHECKING:
    from codex_multi_role.extensions.machines.workers.database import Database
    from codex_multi_role.extensions.machines.workers.worker import Worker

_own = partial(Setting, is_key=False)
"""A setting of workers alone: no key of settings files."""

QUEUES = _own(
    ["--queues"],
    metavar="NAMES",
    default="goals",
    callback=not_empty,
    help="The queues to take runs from, separated by commas.",
)
LABELS = _own(
    ["--labels"],
    metavar="NAMES",
    default="",
    help="What this machine offers, such as linux,gpu: runs may require it.",
)
CONCURRENCY = _own(
    ["--concurrency"],
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    help="Maximum number of runs at once.",
)
NAME = _own(
    ["--name"],
    metavar="NAME",
    callback=not_empty,
    help="Unique name of the worker.",
    show_default="the host name",
)
WORK_DIR = _own(
    ["--work-dir"],
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder on a local disk for the runs in progress.",
    show_default="workers/<name> in --runs-dir",
)
DEAD_AFTER = _own(
    ["--dead-after"],
    metavar="S",
    type=click.FloatRange(min=2),
    default=45.0,
    help="Other workers take this worker's runs if it does not report for S seconds.",
)
MAX_CRASHES = _own(
    ["--max-crashes"],
    metavar="N",
    type=click.IntRange(min=1),
    default=5,
    help="End a run as failed when its process or worker has been lost N times.",
)
WORKER_COLUMNS: Sequence[Column | str] = (
    *("worker", "state", "busy"), Column("runs", text=20), Column("takes", text=12),
    Column("host", text=8, from_width=100), "reported",
)  # fmt: skip
QUEUE_COLUMNS: Sequence[Column | str] = (
    "queue", *(Column(name, number=True) for name in ("waiting", "held", "running", "parked", "ended")),
    Column("oldest", number=True), Column("why", text=20),
)  # fmt: skip
UNTIL_EMPTY = _own(["--until-empty"], is_flag=True, help="Leave when no run waits that this worker could take.")


@command(
    DATABASE_URL, STORE, QUEUES, LABELS, CONCURRENCY, NAME, WORK_DIR, RUNS_DIR, DEAD_AFTER, MAX_CRASHES, UNTIL_EMPTY,
    QUIET,
)  # fmt: skip
def worker(**values: Any) -> None:  # noqa: ANN401 - the settings above
    """Take runs from queues and execute each in a process of its own, until SIGTERM or Ctrl-C.

    The turns in progress are then finished, and their runs go back to the queue; a second signal interrupts them. If
    the worker is killed, other workers take its runs after the last recorded step.

    \b
    Examples:
      codex-multi-role worker --database-url postgresql://team@db/runs
      codex-multi-role worker --labels linux,gpu --store s3://team/runs
    """
    from codex_multi_role.extensions.machines.workers.membership import WorkerSettings
    from codex_multi_role.extensions.machines.workers.submission import open_store
    from codex_multi_role.extensions.machines.workers.worker import Worker, WorkerFolders

    name = values["name"] or os.uname().nodename
    runs_dir = values["runs_dir"].absolute()
    settings = WorkerSettings(
        name=name,
        queues=_names(values["queues"]),
        labels=_names(values["labels"]),
        concurrency=values["concurrency"],
        dead_after_seconds=values["dead_after"],
        max_crashes=values["max_crashes"],
    )
    database = open_database(values["database_url"], runs_dir)
    store = open_store(database, values["store"], default_store(runs_dir))
    folders = WorkerFolders((values["work_dir"] or runs_dir / "workers" / name).absolute())
    require_unsteered(os.environ, folders.work)
    report = (lambda line: None) if values["quiet"] else say
    at_work = Worker(database, store.address, folders, settings, report)
    _drain_on_signals(at_work)
    at_work.work(until_empty=values["until_empty"])


def open_database(database_url: str | None, runs_dir: Path) -> Database:
    """The database at that address; without one, a file in ``runs_dir``. Raises `UsageError`, `StorageError`.

    It is open until the command ends.
    """
    from codex_multi_role.extensions.machines.workers.database import Database

    database = Database.open(database_url or f"sqlite:///{make_folder(runs_dir.absolute()) / 'queue.sqlite'}")
    click.get_current_context().call_on_close(database.close)
    return database


def default_store(runs_dir: Path) -> str:
    return str(runs_dir / "store")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _drain_on_signals(worker: Worker) -> None:
    def drain(_number: int, _frame: FrameType | None) -> None:
        (worker.hurried if worker.draining.is_set() else worker.draining).set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, drain)


def _queue_cells(record: Json) -> list[object]:
    counts = [record[name] for name in ("queue", "waiting", "held", "running", "parked", "ended")]
    return [*counts, duration(record["oldest_seconds"]) if record["waiting"] else "", record["why"]]


def _worker_cells(record: Json) -> list[object]:
    reported = f"{record['silent_seconds']} s ago"
    offers = ", ".join([*record["queues"], *(f"+{label}" for label in record["labels"])])
    places = f"{len(record['runs'])}/{record['concurrency']}"
    return [record["name"], record["state"], places, ", ".join(record["runs"]) or "-", offers, record["host"], reported]


@command(DATABASE_URL, RUNS_DIR, JSON)
def queues(database_url: str | None, runs_dir: Path, json: bool) -> None:
    """List the queues and the workers of a database.

    How many runs wait, for how long, and why; and what each worker takes and works on, and when it last reported.

    \b
    Examples:
      codex-multi-role queues --database-url postgresql://team@db/runs
    """
    from codex_multi_role.extensions.machines.workers.overview import ended_limits, queue_records, worker_records

    database = open_database(database_url, runs_dir)
    records, workers = queue_records(database), worker_records(database)
    if ended := ended_limits(database):
        say(f"note: turns are no longer limited over all workers: the limits of {', '.join(ended)} do not count")
    if json:
        put_json({"queues": records, "workers": workers})
        return
    if records:
        put_table(QUEUE_COLUMNS, map(_queue_cells, records))
    else:
        say("no runs have been submitted")
    if workers:
        put_table(WORKER_COLUMNS, [_worker_cells(record) for record in workers])
    else:
        say(f"no workers; start one with `{command_line('worker', place=place_of(database_url))}`")
