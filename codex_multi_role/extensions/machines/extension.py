"""What is registered: ``batch``, ``worker`` and ``queues``, and where else runs are found.

Beside these, `run_options.MachineOptions` is an option of a run, `journal.journal_client.SharedJournals` has journals,
and `batches.goal_line.GoalLine` is a kind of schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from codex_multi_role.cli.lazy_group import LazyCommand, ended
from codex_multi_role.cli.run_additions import RunFinder, Told
from codex_multi_role.cli.setting import Setting, not_empty
from codex_multi_role.extensions.machines.journal.database_url import FLAG, place_of
from codex_multi_role.option import Section

if TYPE_CHECKING:
    from codex_multi_role.cli.run_additions import RemoteRuns

batch = LazyCommand(f"{__package__}.commands.batch:batch", "Run many goals, from a file with one per line.", "Run")
worker = LazyCommand(f"{__package__}.commands.workers:worker", "Take runs from the queues of a database.")
queues = LazyCommand(f"{__package__}.commands.workers:queues", "List the queues and workers of a database.")
work_on = ended("work-on", "`resume RUN` continues a run, `batch FILE --resume` a batch")
workers = ended("workers", "`queues` lists them too")

SHARED_RUNS = Setting(
    [FLAG],
    section=Section.TEAM,
    trust=True,
    is_set_once=True,
    metavar="URL",
    callback=not_empty,
    help="Also the runs that the workers of this database execute.",
    show_default="only those in --runs-dir",
)


def _runs_on_workers(database_url: str) -> RemoteRuns | None:
    from codex_multi_role.extensions.machines.workers.finding import RunsOnWorkers  # here: the extra may be missing

    return RunsOnWorkers.open(database_url)


def at_database(shared: Mapping[str, Any]) -> list[str]:
    """The option that names the database of a run, from what its ``run.json`` has under ``shared``."""
    return place_of(shared.get("database"))


def _told(record: Mapping[str, Any]) -> Told:
    from codex_multi_role.extensions.machines.workers.shared_words import told  # here: only for a run on workers

    return told(record)


runs_on_workers = RunFinder(SHARED_RUNS, _runs_on_workers, at_database, "worker", _told)
