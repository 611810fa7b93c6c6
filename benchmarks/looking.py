"""What looking at finished runs costs: `runs` with 3,000 of them, `show` and `report` with an event log of 500 MB.

    python benchmarks/looking.py [--runs 3000] [--megabytes 500]

Each command is a process of its own. Prints its seconds, and how often the files that it needs could have been read as
bytes in that time. Exits with 1 where `runs` takes a second, or `show` or `report` five.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from serve import write_run

from codex_multi_role.run_folder import RunEvent, RunFolder, TurnFolder
from codex_multi_role.run_folder import events as e

RUNS_SECONDS, LOG_SECONDS = 1.0, 5.0
MEGABYTE = 1024 * 1024
ROLES = ["planner", "implementer"]
TURNS = 40
LISTED = "20260130_{0:06d}_{0:08x}"
COMMAND = [sys.executable, "-m", "codex_multi_role"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--megabytes", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        many, large = Path(name, "many"), Path(name, "large")
        records = [write_run(many, LISTED.format(number), number).record_path for number in range(options.runs)]
        log = write_large_run(large, options.megabytes * MEGABYTE).events_path
        print(f"{options.runs} runs; a log of {log.stat().st_size / MEGABYTE:.0f} MB")
        met = [
            report(["runs", "--runs-dir", str(many)], records, RUNS_SECONDS),
            report(["show", "large", "--runs-dir", str(large)], [log], LOG_SECONDS),
            report(["report", "large", "--runs-dir", str(large), "--quiet"], [log], LOG_SECONDS),
        ]
    sys.exit(0 if all(met) else 1)


def write_large_run(runs: Path, size: int) -> RunFolder:
    """A run of `TURNS` turns whose log is that large: nearly all of it is what the roles did within their turns."""
    folder = write_run(runs, "large", 0)
    for number in range(1, TURNS // len(ROLES) + 1):
        for role in ROLES:
            turn = TurnFolder.of(folder, role, number)
            turn.path.mkdir(parents=True)
            turn.write_result({"status": "completed", "tokens": {"input": 9000, "output": 700}, "seconds": 41.5})
    with folder.events_path.open("w", encoding="utf-8") as log:
        for event in happened(size // TURNS):
            log.write(json.dumps(event.as_record(), ensure_ascii=False) + "\n")
    return folder


def happened(size: int) -> Iterator[RunEvent]:
    """The events of the run; each turn has about ``size`` bytes of them."""
    yield e.RunStarted("large", "goal", "cycles", TURNS, ROLES, "/w", "/w/runs/large", None, False, ["team"])
    for number in range(1, TURNS // len(ROLES) + 1):
        yield e.StepStarted("team", number, number, number)
        for role in ROLES:
            yield e.TurnStarted(role, number, number, 1, None)
            yield from activity(role, number, size)
            yield e.TurnEnded(role, number, "completed", "completed", "", 9000, 700, 41.5, f"{role} did part {number}")


def activity(role: str, turn: int, size: int) -> Iterator[RunEvent]:
    done: list[RunEvent] = [
        e.RoleActivity(role, turn, "command: python -m pytest -q tests/test_part.py"),
        e.CommandEnded(role, turn, "python -m pytest -q tests/test_part.py", 0, 1.5),
        e.RoleActivity(role, turn, "message"),
    ]
    for _ in range(size // sum(len(json.dumps(event.as_record())) + 1 for event in done)):
        yield from done


def seconds_of(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def report(arguments: list[str], files: Sequence[Path], most: float) -> bool:
    """Print what the command takes; returns whether it is less than ``most``."""
    once = seconds_of(lambda: [path.read_bytes() for path in files])
    took = seconds_of(lambda: subprocess.run([*COMMAND, *arguments], stdout=subprocess.DEVNULL, check=True))
    print(
        f"{arguments[0]:<8} {took:6.2f} s, {took / once:6.1f} times as long as reading the bytes (at most {most:g} s)"
    )
    return took < most


if __name__ == "__main__":
    main()
