"""The settings of a batch, and of the places where workers find its runs."""

from __future__ import annotations

import os

import click

from codex_multi_role.cli.options import JSON, PLAIN, QUIET, SETTINGS
from codex_multi_role.cli.setting import Setting, not_empty, setting_of
from codex_multi_role.extensions.machines.run_options import MachineOptions
from codex_multi_role.option import Use, options_in
from codex_multi_role.run_options import LIMITS, options_with

MAX_CONCURRENCY = 256
TOGETHER = "All goals together"


def default_concurrency(processors: int) -> int:
    """How many goals run at once by default: each has several processes, and tests."""
    return max(1, processors // 2)


DATABASE_URL = setting_of(options_in(MachineOptions)["database_url"])
CONCURRENCY = Setting(
    ["--concurrency"],
    metavar="N",
    type=click.IntRange(min=1, max=MAX_CONCURRENCY),
    default=lambda: default_concurrency(os.cpu_count() or 1),
    section=TOGETHER,
    help="Maximum number of goals at once.",
    show_default="half the number of CPUs",
)
SHARD = Setting(
    ["--shard"],
    metavar="I/N",
    callback=not_empty,
    section=TOGETHER,
    help="Run only part I of N of the goals: each goal is in exactly one part, decided by its id.",
    show_default="all goals",
)
AMOUNTS = ("turns", "tokens", "seconds of work", "US dollars")


def _total(limit: Setting, amount: str) -> Setting:
    return Setting(
        [f"--total-{limit.opts[0].removeprefix('--')}"],
        metavar=limit.metavar,
        type=limit.type,
        callback=limit.callback,
        section=TOGETHER,
        help=f"Start a goal only if its {limit.opts[0]} is left of {limit.metavar} {amount} for all goals.",
    )


MAX_FAILURES = Setting(
    ["--max-failures"],
    metavar="N",
    type=click.IntRange(min=1),
    section=TOGETHER,
    help="Start no more goals once N have failed (exit code 2 or 3). Not with --database-url.",
    show_default="unlimited",
)
QUEUE = Setting(
    ["--queue"],
    metavar="NAME",
    default="goals",
    callback=not_empty,
    section=TOGETHER,
    help="With --database-url: the queue of the runs.",
)
STORE = Setting(
    ["--store"],
    trust=True,
    metavar="ADDRESS",
    callback=not_empty,
    section=TOGETHER,
    help="Where run folders are saved for all machines: a shared folder, or an address such as s3://bucket/runs.",
    show_default="the one the database knows; at first, store/ in --runs-dir",
)
TOTALS = {what: _total(SETTINGS[name], words) for (what, name), words in zip(LIMITS.items(), AMOUNTS, strict=True)}
"""The limits of all goals together, by what they limit."""
BATCH = [CONCURRENCY, SHARD, *TOTALS.values(), MAX_FAILURES, QUEUE, STORE]
"""The settings of a whole batch."""
RUN_OF_BATCH = [*map(setting_of, options_with(Use.COMMON).values()), JSON, PLAIN, QUIET]
"""The settings of a run that a batch takes for its goals."""
