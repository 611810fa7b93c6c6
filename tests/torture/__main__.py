"""Torture: kill a run wherever it can be killed, resume it, and see that nothing is lost and nothing paid for again.

    python -m tests.torture                          every point; about 25 minutes
    python -m tests.torture --points 200 --seed 7    some of them
    python -m tests.torture --only wire:131          one again

Prints its counts; the exit code is 1 if anything was wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import click

from tests.torture.points import KINDS, Point, choose
from tests.torture.trial import Trial, Undisturbed, attempt, undisturbed

JOBS = 2


def torture(points: Sequence[Point], folder: Path, expected: Undisturbed, at_once: bool = False) -> Iterator[Trial]:
    """Try all ``points``, two at a time; what went wrong stays in ``folder``, the rest is removed."""
    with ThreadPoolExecutor(JOBS) as pool:
        folders = [folder / str(point).replace(":", "-") for point in points]
        trials = [pool.submit(attempt, *pair, expected, at_once) for pair in zip(points, folders, strict=True)]
        for future in as_completed(trials):
            trial = future.result()
            if not trial.wrong:
                shutil.rmtree(trial.folder, ignore_errors=True)
            yield trial


def tell_failure(trial: Trial) -> None:
    click.echo(f"WRONG at {trial.point}, {trial.place or 'the run was not killed'}")
    for words in trial.wrong:
        click.echo(f"    {words}")
    click.echo(f"    again: python -m tests.torture --only {trial.point}; kept: {trial.folder}")


def tell_counts(trials: Sequence[Trial]) -> None:
    killed = [trial for trial in trials if trial.place]
    click.echo(
        f"{len(trials)} points: {len(killed)} kills ({len(trials) - len(killed)} runs ended before their point), "
        f"{sum(trial.resumes for trial in trials)} resumes, {sum(trial.anew for trial in trials)} started anew, "
        f"{sum(trial.twice for trial in trials)} turns paid twice, "
        f"{max((trial.leaving for trial in trials), default=0):.1f} s until the last process had left, "
        f"{sum(bool(trial.wrong) for trial in trials)} failures"
    )


def number_or_all(text: str) -> int | None:
    return None if text == "all" else int(text)


def some_kinds(text: str) -> list[str]:
    kinds = text.split(",")
    if unknown := set(kinds) - set(KINDS):
        raise ValueError(f"{', '.join(unknown)}: none of {', '.join(KINDS)}")
    return kinds


@click.command(help=__doc__)
@click.option("--points", type=number_or_all, default="all", metavar="all|N", help="How many points to try.")
@click.option("--seed", type=int, default=0, help="Decides which, and in which order.")
@click.option("--kinds", type=some_kinds, default=",".join(KINDS), show_default=True)
@click.option("--only", type=Point.parse, multiple=True, metavar="KIND:N", help="This point; may be repeated.")
@click.option("--at-once", is_flag=True, help="Resume while processes of the killed run may still be leaving.")
def main(points: int | None, seed: int, kinds: list[str], only: tuple[Point, ...], at_once: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    expected = undisturbed(folder / "undisturbed")
    counts = {kind: len(places) for kind, places in expected.passed.items()}
    passed = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    click.echo(f"an undisturbed run takes {expected.seconds:.1f} s and can be killed at: {passed}")
    trials = []
    for trial in torture(only or choose(counts, kinds, points, seed), folder, expected, at_once):
        trials.append(trial)
        if trial.wrong:
            tell_failure(trial)
    tell_counts(trials)
    if any(trial.wrong for trial in trials):
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
