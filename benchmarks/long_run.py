"""Whether a long run stays as small and as fast as it began.

One run of a thousand turns: four roles, a model that answers at once, no tests. It is the command itself, in a process
of its own; at the end of every turn that process's resident memory and processor time are read. Neither Codex nor the
model is counted.

Codex sends a role's whole thread to the model with every turn, so its part of a turn grows with the thread, whoever
drives it (with the shipped roles' prompts, from 49 to 60 ms over 250 turns a role). The prompts here are one line, so
that what could grow is ours.

    python benchmarks/long_run.py [--turns 1000]

Prints the figures along the way. Exits with 1 when memory grew by more than 10 % from the first fifth of the run to its
end, or the time a turn by more than 25 % from the first tenth to the last.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import psutil
import yaml
from floor import ANSWER, ROLES
from raw import provider

from codex_multi_role.playbook import Playbook, PlaybookServer

CATALOG = {"version": 1, "roles": [{"name": role, "prompt_text": "Take the next step."} for role in ROLES]}
CYCLES_USED_UP = 1
MEMORY_MAY_GROW = 1.10
TIME_MAY_GROW = 1.25
FEWEST_TURNS = 40
MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Sample:
    """The end of a turn: when, our resident memory in megabytes, our processor seconds so far."""

    at: datetime
    memory: float
    processor: float


def samples(base_url: str, cycles: int, folder: Path) -> Iterator[Sample]:
    """Run the command in ``folder`` and yield a sample at the end of every turn."""
    (folder / "roles").mkdir()
    (folder / "roles" / "catalog.yaml").write_text(yaml.safe_dump(CATALOG))
    flags = [part for setting in provider(base_url) for part in ("-c", setting)]
    options = ["--goal", "stay flat", "--cycles", str(cycles), "--no-run-tests", "--json", *flags]
    command = [sys.executable, "-m", "codex_multi_role", "run", *options]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        process = psutil.Process(child.pid)
        for event in map(json.loads, child.stdout):
            if event["type"] == "turn_ended":
                yield sample(process, datetime.fromisoformat(event["at"]))
    if child.returncode != CYCLES_USED_UP:
        raise SystemExit(f"the run ended with exit code {child.returncode}")


def sample(process: psutil.Process, at: datetime) -> Sample:
    with process.oneshot():
        spent = process.cpu_times()
        return Sample(at, process.memory_info().rss / MEGABYTE, spent.user + spent.system)


def seconds_a_turn(part: list[Sample]) -> float:
    """The median time from one turn's end to the next one's."""
    return statistics.median((after.at - before.at).total_seconds() for before, after in pairwise(part))


def processor_a_turn(part: list[Sample]) -> float:
    return (part[-1].processor - part[0].processor) / (len(part) - 1)


def report(run: list[Sample]) -> bool:
    """Print the table; returns whether the run stayed flat."""
    tenth = len(run) // 10
    print(f"{'turn':>6}{'memory, MB':>14}{'median ms a turn':>20}{'our CPU ms a turn':>20}")
    for end in (tenth, 2 * tenth, 5 * tenth, len(run)):
        part = run[end - tenth : end]
        times = seconds_a_turn(part) * 1000, processor_a_turn(part) * 1000
        print(f"{end:>6}{run[end - 1].memory:>14.1f}{times[0]:>20.1f}{times[1]:>20.1f}")
    memory = run[-1].memory / run[2 * tenth - 1].memory
    time = seconds_a_turn(run[-tenth:]) / seconds_a_turn(run[:tenth])
    print(f"memory, turn {len(run)} / turn {2 * tenth}: {memory:.2f} (at most {MEMORY_MAY_GROW:.2f})")
    print(f"time a turn, last {tenth} / first {tenth}: {time:.2f} (at most {TIME_MAY_GROW:.2f})")
    return memory <= MEMORY_MAY_GROW and time <= TIME_MAY_GROW


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=1000, help=f"in full cycles of four, at least {FEWEST_TURNS}")
    turns = max(parser.parse_args().turns, FEWEST_TURNS)
    playbook = Playbook.model_validate(
        {"name": "long", "roles": {role: [ANSWER] for role in ROLES}, "repeat_last": True}
    )
    with PlaybookServer(playbook) as server, tempfile.TemporaryDirectory() as folder:
        run = list(samples(server.base_url, turns // len(ROLES), Path(folder)))
    sys.exit(0 if report(run) else 1)


if __name__ == "__main__":
    main()
