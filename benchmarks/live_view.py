"""What the terminal's live view costs beside a run: a thousand events a second for ten seconds.

    python benchmarks/live_view.py [--rate 1000] [--seconds 10] [--roles 8]

The same events are taken once by nobody and once by the view, on a terminal of 120 columns. Prints the processor time
of each as a share of one core, and exits 1 where the view costs more than 3 %.
"""

from __future__ import annotations

import argparse
import os
import pty
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator

from codex_multi_role.cli.foreground import open_view
from codex_multi_role.presentation.course import Course
from codex_multi_role.run_folder import Record
from codex_multi_role.run_folder import events as e

SHARE_AT_MOST = 0.03
BATCHES_A_SECOND = 100


def events(roles: int, number: int) -> Iterator[Record]:
    """A run of ``roles`` that never stops working: mostly activity, now and then a turn that ends and begins."""
    names = [f"role{index}" for index in range(roles)]
    yield e.RunStarted(
        "20260131_101500_0a1b2c3d", "goal", "cycles", 3, names, "/w", "/w/runs/x", None, False, ["team"]
    ).as_record()
    for index in range(number):
        name = names[index % roles]
        if index % 50 == 0:
            yield e.TurnEnded(name, index, "completed", "completed", "", 1200, 34, 1.5, "said").as_record()
            yield e.TurnStarted(name, index + 1, 1 + index // 1000, 1, None).as_record()
        else:
            yield e.RoleActivity(name, index, f"command: step {index}").as_record()


def processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def feed(records: list[Record], rate: int, take: Callable[[Record], object]) -> float:
    """Hand the records over at that rate; the processor seconds that it took."""
    began, before = time.monotonic(), processor()
    size = max(1, rate // BATCHES_A_SECOND)
    for begin in range(0, len(records), size):
        for record in records[begin : begin + size]:
            take(record)
        time.sleep(max(0.0, began + (begin + size) / rate - time.monotonic()))
    return processor() - before


def on_own_terminal() -> None:
    """Make standard error a terminal that a thread reads and forgets."""
    ours, theirs = pty.openpty()
    os.dup2(theirs, sys.stderr.fileno())
    threading.Thread(target=drain, args=(ours,), daemon=True).start()


def drain(descriptor: int) -> None:
    while os.read(descriptor, 65536):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rate", type=int, default=1000, help="events a second")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--roles", type=int, default=8)
    options = parser.parse_args()
    os.environ |= {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
    on_own_terminal()
    records = list(events(options.roles, options.rate * options.seconds))
    seconds = len(records) / options.rate
    with open_view(Course(), as_json=False, quiet=False, plain=False) as view:
        feed(records[: options.rate], options.rate, view)  # what is loaded once is not what is measured
    unseen = feed(records, options.rate, lambda record: None)
    with open_view(Course(), as_json=False, quiet=False, plain=False) as view:
        seen = feed(records, options.rate, view)
    share = (seen - unseen) / seconds
    print(f"events     {len(records)} in {seconds:.0f} s, {options.roles} roles")
    print(f"nobody     {unseen / seconds:.2%} of a core")
    print(f"the view   {share:.2%} of a core on top (at most {SHARE_AT_MOST:.0%})")
    sys.exit(0 if share <= SHARE_AT_MOST else 1)


if __name__ == "__main__":
    main()
