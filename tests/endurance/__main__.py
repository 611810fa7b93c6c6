"""Endurance: strike work with a fault wherever it can strike, resume it, and see that nothing is wrong or lost.

\b
    python -m tests.endurance                         the whole: every fault at every point of every scenario
    python -m tests.endurance kill --double 200       the runs that resume are struck as well, in 200 pairs of points
    python -m tests.endurance frozen --points 20 --seed 7
    python -m tests.endurance kill --scenario fan-out --only wire:131+journal:12
    python -m tests.endurance line --only cruel:7     points of this fault are seeds of profiles: 20 of each

\b
kill       SIGKILL at any write, message or start of a child
full-disk  the disk is full from any of these points on, until the run has ended
frozen     any one process below the run is stopped, as by a debugger
line       what the run and its Codex say to each other is disturbed

Prints each trial and its counts; the exit code is 1 if anything was wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import click

from tests.endurance.bench import Trial, Undisturbed
from tests.endurance.faults import FAULTS, Fault
from tests.endurance.points import Points, choose, choose_pairs
from tests.endurance.scenarios import Struck
from tests.endurance.trial import attempt, undisturbed


def endure(
    fault: Fault,
    scenario: Struck,
    all_points: Sequence[Points],
    folder: Path,
    expected: Undisturbed,
    jobs: int | None = None,
    at_once: bool = False,
) -> Iterator[Trial]:
    """Try ``all_points``, a few at a time; what went wrong stays in ``folder``, the rest is removed."""
    with ThreadPoolExecutor(jobs or fault.jobs) as pool:
        trials = [
            pool.submit(attempt, fault, scenario, points, folder / f"{n}-{points}".replace(":", "-"), expected, at_once)
            for n, points in enumerate(all_points, start=1)
        ]
        for future in as_completed(trials):
            trial = future.result()
            if not trial.wrong:
                shutil.rmtree(trial.folder, ignore_errors=True)
            yield trial


def points_to_try(
    fault: Fault,
    counts: Mapping[str, int],
    only: Sequence[Points],
    most: int | None,
    double: int,
    seed: int,
    kinds: str | None,
) -> list[Points]:
    """Those of the command line: ``only`` these, or ``most`` that ``seed`` decides and ``double`` pairs."""
    if only:
        return list(only)
    some = kinds.split(",") if kinds else list(counts)
    return choose(counts, some, most or fault.default_points, seed) + choose_pairs(counts, some, double, seed)


def described(trial: Trial) -> Trial:
    """Print what came of it; the trial."""
    places = ", then ".join(place[:120] for place in trial.places) or "(it ended before)"
    click.echo(f"{'WRONG at ' if trial.wrong else ''}{trial.points} {places}; {trial.seconds:.1f} s")
    for line in (*trial.ended_by, *(f"stopped: {stop}" for stop in trial.stops)):
        click.echo(f"    {line}")
    for line in trial.wrong:
        click.echo(f"    WRONG: {line}")
    if trial.wrong:
        again = f"python -m tests.endurance {trial.fault.name} --scenario {trial.scenario.name} --only {trial.points}"
        click.echo(f"    again: {again}; kept: {trial.folder}")
    return trial


def summarize(trials: Sequence[Trial]) -> None:
    stops = Counter(stop.partition(":")[0] for trial in trials for stop in trial.stops)
    reasons = ", ".join(f"{count} {outcome}" for outcome, count in stops.most_common())
    click.echo(
        f"{len(trials)} trials, {sum(len(trial.points) > 1 for trial in trials)} of them with more than one point: "
        f"{sum(len(trial.places) for trial in trials)} times struck "
        f"({sum(len(trial.places) < len(trial.points) for trial in trials)} ended before a point), "
        f"{stops.total()} times stopped short{f' ({reasons})' if reasons else ''}, "
        f"{sum(trial.resumes for trial in trials)} resumes, {sum(trial.restarts for trial in trials)} started again, "
        f"{sum(trial.twice for trial in trials)} turns paid twice, "
        f"{max((trial.leaving for trial in trials), default=0):.1f} s until the last process had left, "
        f"{sum(bool(trial.wrong) for trial in trials)} failures"
    )


@click.command(help=__doc__)
@click.argument("name", metavar="[FAULT]", type=click.Choice(list(FAULTS)), required=False)
@click.option("--scenario", "only_scenario", help="Only this one of the fault's scenarios.")
@click.option("--points", "most", type=int, metavar="N", help="How many points of each scenario to try.")
@click.option("--double", type=int, default=0, metavar="N", help="So many pairs as well: struck, resumed and struck.")
@click.option("--seed", type=int, default=0, help="Decides which, and in which order.")
@click.option("--kinds", help="Only points of these kinds, with commas between them.")
@click.option("--only", type=Points.parse, multiple=True, metavar="KIND:N[+KIND:N]", help="These; may be repeated.")
@click.option("--at-once", is_flag=True, help="Resume while processes of a killed run may still be leaving.")
@click.option("--jobs", type=int, help="How many trials at once.")
def main(name: str | None, only_scenario: str | None, jobs: int | None, at_once: bool, **options: Any) -> None:
    folder = Path(tempfile.mkdtemp(prefix="endurance-"))
    everything = []
    for fault in [FAULTS[name]] if name else FAULTS.values():
        for scenario in (each for each in fault.scenarios if only_scenario in (None, each.name)):
            place = folder / fault.name / scenario.name
            expected = undisturbed(fault, scenario, place / "undisturbed")
            counts = fault.counts(expected.passed)
            told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
            click.echo(f"{fault.name}, {scenario.name}: {expected.seconds:.1f} s undisturbed; points: {told}")
            chosen = points_to_try(fault, counts, **options)
            trials = list(map(described, endure(fault, scenario, chosen, place, expected, jobs, at_once)))
            summarize(trials)
            everything += trials
    if not everything or any(trial.wrong for trial in everything):
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
