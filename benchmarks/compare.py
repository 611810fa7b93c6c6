"""How our command compares with a raw driver, the official Codex SDK, and other frameworks, at the same job.

    python benchmarks/compare.py [--environments DIR] [--runs 5] [--only NAME …] [--markdown]

One environment per peer, with pinned versions, is created in ``--environments`` and reused. All drivers use the same
loopback model, one after the other in each round: twelve turns of four agents at 0 ms and at 1 s model latency, and
sixteen agents at once at 200 ms. Memory and bytes come from one more run, whose time does not count. Prints medians of
whole-process wall time and of the ratio to ours in the same round; what could not be measured is listed with its
reason.

Drivers do not do the same. The raw driver, the SDK and ours run Codex, with its instructions and tools in each request
and a process for each agent; the others call the model, in one process. Only ours records anything.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from comparison_drivers import OURS, PEERS, QUIET, RAW, Driver, ours, peer, raw_driver
from comparison_environments import NotMeasured
from comparison_measure import Footprint, Job, measure_times, run
from comparison_model import ComparisonModel

ENVIRONMENTS = Path.home() / ".cache" / "codex-multi-role-compare"
HEADINGS = ("12 turns", "12 turns at 1 s", "16 at once", "memory, turns", "memory, 16", "sent, turns", "installed")
NONE = "-"


@dataclass
class Row:
    """The cells of one driver under `HEADINGS`; ``failures``: why some are empty."""

    driver: Driver | None
    cells: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def jobs(runs: int) -> tuple[Job, Job, Job]:
    slow = max(1, runs // 2)
    return (
        Job(HEADINGS[0], "turns", 0.0, 12, runs),
        Job(HEADINGS[1], "turns", 1.0, 12, slow),
        Job(HEADINGS[2], "fan", 0.2, 16, runs),
    )


def main() -> None:
    options = read_options()
    names = options.only or [RAW, OURS, *PEERS]
    with tempfile.TemporaryDirectory() as project, ComparisonModel() as model:
        rows = {name: Row(None) for name in names}
        drivers = list(prepare_all(rows, options.environments, Path(project)))
        load = os.getloadavg()[0]
        os.environ.update(QUIET)  # after the installations, which may need a proxy
        os.environ["HOME"] = str(options.environments / "home")
        measure(rows, drivers, jobs(options.runs), model)
    print_table(rows, options.markdown)
    print(conditions(rows, load))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--environments", type=lambda path: Path(path).resolve(), default=ENVIRONMENTS, metavar="DIR")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=[RAW, OURS, *PEERS], metavar="NAME")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/explanation/performance.md")
    return parser.parse_args()


def prepare_all(rows: Mapping[str, Row], environments: Path, project: Path) -> Iterable[Driver]:
    (environments / "home").mkdir(parents=True, exist_ok=True)
    for name, row in rows.items():
        try:
            row.driver = (
                raw_driver()
                if name == RAW
                else ours(environments, project)
                if name == OURS
                else peer(name, environments)
            )
            yield row.driver
        except NotMeasured as error:
            row.failures.append(str(error))


def measure(
    rows: Mapping[str, Row], drivers: Sequence[Driver], work: tuple[Job, Job, Job], model: ComparisonModel
) -> None:
    """Fill the cells of every row."""
    for job in work:
        times = measure_times(job, drivers, model)
        for name, seconds in times.items():
            if isinstance(seconds, str):
                rows[name].failures.append(seconds)
                rows[name].cells.append(NONE)
            else:
                rows[name].cells.append(f"{statistics.median(seconds):.2f} s{ratio(seconds, times.get(OURS))}")
    for driver in drivers:
        measure_footprints(rows[driver.name], driver, (work[0], work[2]), model)


def ratio(seconds: Sequence[float], ours: Sequence[float] | str | None) -> str:
    """The median of each round's ratio to our time in it: the speed of a machine changes from round to round."""
    if ours is None or isinstance(ours, str):
        return ""
    return f" ({statistics.median(each / own for each, own in zip(seconds, ours, strict=True)):.2f})"


def measure_footprints(row: Row, driver: Driver, work: tuple[Job, Job], model: ComparisonModel) -> None:
    turns, fan = (footprint_of(row, driver, job, model) for job in work)
    installed = driver.environment
    row.cells += [
        *(f"{each.peak_bytes / 1e6:.0f} MB" if each else NONE for each in (turns, fan)),
        f"{turns.sent_bytes / 1e3:.0f} kB" if turns else NONE,
        f"{len(installed.versions)}, {installed.megabytes:.0f} MB" if installed else NONE,
    ]


def footprint_of(row: Row, driver: Driver, job: Job, model: ComparisonModel) -> Footprint | None:
    footprint = Footprint()
    try:
        run(job, driver, model, footprint)
    except NotMeasured as error:
        row.failures.append(str(error))
        return None
    if footprint.requests != job.requests:
        row.failures.append(f"{job.title}: {footprint.requests} requests for {job.requests} turns")
    if footprint.left_loopback:
        row.failures.append(f"{job.title}: connections beyond loopback: {', '.join(sorted(footprint.left_loopback))}")
    return footprint


def print_table(rows: Mapping[str, Row], markdown: bool) -> None:
    lines = [["", *HEADINGS], *([name, *(row.cells or [NONE] * len(HEADINGS))] for name, row in rows.items())]
    if markdown:
        lines.insert(1, ["---"] * len(lines[0]))
        print("\n".join(f"| {' | '.join(line)} |" for line in lines))
    else:
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        print("\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines))
    print()
    for name, row in rows.items():
        for failure in dict.fromkeys(row.failures):
            print(f"{name}: not measured: {failure}" if not row.cells else f"{name}: {failure}")


def conditions(rows: Mapping[str, Row], load: float) -> str:
    """Date, machine, its ``load`` before the measurement, and versions."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB"
    machine += f", Python {platform.python_version()}, load average {load:.1f} before"
    return f"Measured on {datetime.date.today()}; {machine}. Versions: {'; '.join(versions(rows))}."


def versions(rows: Mapping[str, Row]) -> Iterable[str]:
    for name, row in rows.items():
        if row.driver and (installed := row.driver.environment):
            wanted = (
                [OURS, "openai-codex-cli-bin"]
                if name == OURS
                else [each.split("[")[0].split("==")[0] for each in PEERS[name][1]]
            )
            yield ", ".join(f"{each} {installed.versions.get(each, '?')}" for each in wanted)


if __name__ == "__main__":
    main()
