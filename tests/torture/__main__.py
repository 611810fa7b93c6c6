"""Torture: kill a run wherever it can be killed, resume it, and see that nothing is lost and nothing paid for again.

    python -m tests.torture --double 200             the whole: every point of every scenario, and pairs of points
    python -m tests.torture --points 200 --seed 7    some points of each
    python -m tests.torture --scenario fan-out --only wire:131
    python -m tests.torture --scenario fan-out --only wire:131+journal:12     the resumed run is killed as well
    python -m tests.torture --full-disk              instead of a kill the disk is full, from that point on

The scenarios are data, in the folder of that name. Prints its counts; the exit code is 1 if anything was wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

import click

from tests.torture.full_disk import attempt_on_full_disk
from tests.torture.ground import Undisturbed, undisturbed
from tests.torture.points import KINDS, Kills, choose, choose_pairs
from tests.torture.scenarios import SCENARIOS, Scenario
from tests.torture.trial import Trial, attempt

JOBS = 2
ALL = "all"
Attempt = Callable[[Scenario, Kills, Path, Undisturbed], Trial]


def torture(
    scenario: Scenario, all_kills: Sequence[Kills], folder: Path, expected: Undisturbed, one: Attempt = attempt
) -> Iterator[Trial]:
    """Try ``all_kills``, two at a time; what went wrong stays in ``folder``, the rest is removed."""
    with ThreadPoolExecutor(JOBS) as pool:
        trials = [
            pool.submit(one, scenario, kills, folder / f"{number}-{kills}".replace(":", "-"), expected)
            for number, kills in enumerate(all_kills, start=1)
        ]
        for future in as_completed(trials):
            trial = future.result()
            if not trial.wrong:
                shutil.rmtree(trial.folder, ignore_errors=True)
            yield trial


def tell_failure(trial: Trial) -> None:
    click.echo(f"WRONG at {trial.kills}, {', then '.join(trial.places) or 'the run was not killed'}")
    for words in trial.wrong:
        click.echo(f"    {words}")
    kind = " --full-disk" if trial.on_full_disk else ""
    again = f"python -m tests.torture --scenario {trial.scenario.name}{kind} --only {trial.kills}"
    click.echo(f"    again: {again}; kept: {trial.folder}")


def tell_counts(scenario: Scenario, trials: Sequence[Trial]) -> None:
    early = sum(len(trial.places) < len(trial.kills) for trial in trials)
    click.echo(
        f"{scenario.name}: {len(trials)} trials, {sum(len(trial.kills) > 1 for trial in trials)} of them with more "
        f"than one kill: {sum(len(trial.places) for trial in trials)} kills ({early} runs ended before their point), "
        f"{sum(trial.resumes for trial in trials)} resumes, {sum(trial.anew for trial in trials)} started anew, "
        f"{sum(trial.twice for trial in trials)} turns paid twice, "
        f"{max((trial.leaving for trial in trials), default=0):.1f} s until the last process had left, "
        f"{sum(bool(trial.wrong) for trial in trials)} failures"
    )


def number_or_all(text: str) -> int | None:
    return None if text == ALL else int(text)


def some_kinds(text: str) -> list[str]:
    kinds = text.split(",")
    if unknown := set(kinds) - set(KINDS):
        raise ValueError(f"{', '.join(unknown)}: none of {', '.join(KINDS)}")
    return kinds


@click.command(help=__doc__)
@click.option("--scenario", "name", type=click.Choice([*SCENARIOS, ALL]), default=ALL, show_default=True)
@click.option("--points", type=number_or_all, default=ALL, metavar="all|N", help="How many points of each to try.")
@click.option("--double", type=int, default=0, metavar="N", help="So many pairs as well: killed, resumed and killed.")
@click.option("--seed", type=int, default=0, help="Decides which, and in which order.")
@click.option("--kinds", type=some_kinds, default=",".join(KINDS), show_default=True)
@click.option("--only", type=Kills.parse, multiple=True, metavar="KIND:N[+KIND:N]", help="These; may be repeated.")
@click.option("--at-once", is_flag=True, help="Resume while processes of the killed run may still be leaving.")
@click.option("--full-disk", is_flag=True, help="Kill nothing: let the disk be full from the point on.")
def main(
    name: str,
    points: int | None,
    double: int,
    seed: int,
    kinds: list[str],
    only: tuple[Kills, ...],
    at_once: bool,
    full_disk: bool,
) -> None:
    one: Attempt = attempt_on_full_disk if full_disk else partial(attempt, at_once=at_once)
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    wrong = False
    for scenario in SCENARIOS.values() if name == ALL else [SCENARIOS[name]]:
        expected = undisturbed(scenario, folder / scenario.name / "undisturbed")
        counts = expected.counts
        passed = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        click.echo(f"{scenario.name}: an undisturbed run takes {expected.seconds:.1f} s and can be killed at: {passed}")
        chosen = only or [*choose(counts, kinds, points, seed), *choose_pairs(counts, kinds, double, seed)]
        trials = []
        for trial in torture(scenario, chosen, folder / scenario.name, expected, one):
            trials.append(trial)
            if trial.wrong:
                tell_failure(trial)
        tell_counts(scenario, trials)
        wrong = wrong or any(trial.wrong for trial in trials)
    if wrong:
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
