"""Freeze any one child of a run, as a debugger does, and see that the run ends, says why, and can be gone on with.

    python -m tests.frozen          the whole: every process below a run, and Codex at every message
    python -m tests.frozen --kinds below --points 20 --seed 7
    python -m tests.frozen --only starts:8

Prints for each what was frozen, what ended the wait for it and how long the run took; the exit code is 1 if anything
was wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import click

from tests.frozen.points import KINDS, parse
from tests.frozen.trial import Trial, Undisturbed, attempt, undisturbed
from tests.torture.__main__ import ALL, number_or_all
from tests.torture.points import Point, choose

JOBS = 4


def freeze(points: Sequence[Point], folder: Path, expected: Undisturbed) -> Iterator[Trial]:
    """Try all ``points``, a few at a time: a frozen run mostly waits. What went wrong stays in ``folder``."""
    with ThreadPoolExecutor(JOBS) as pool:
        trials = [pool.submit(attempt, each, folder / f"{each}".replace(":", "-"), expected) for each in points]
        for future in as_completed(trials):
            trial = future.result()
            if not trial.wrong:
                shutil.rmtree(trial.folder, ignore_errors=True)
            yield trial


def some_kinds(text: str) -> list[str]:
    kinds = text.split(",")
    if unknown := set(kinds) - set(KINDS):
        raise ValueError(f"{', '.join(unknown)}: none of {', '.join(KINDS)}")
    return kinds


def tell(trial: Trial) -> None:
    ended_by = "; ".join(trial.ended_by) or "no deadline that the run tells of"
    click.echo(f"{trial.point} {trial.what[:120] or '(the run ended before)'}")
    click.echo(f"    {trial.seconds:.1f} s{f', stopped: {trial.stop}' if trial.stop else ''}; ended by: {ended_by}")
    for words in trial.wrong:
        click.echo(f"    WRONG: {words}")
    if trial.wrong:
        click.echo(f"    again: python -m tests.frozen --only {trial.point}; kept: {trial.folder}")


@click.command(help=__doc__)
@click.option("--points", type=number_or_all, default=ALL, metavar="all|N", help="How many points to try.")
@click.option("--seed", type=int, default=0, help="Decides which, and in which order.")
@click.option("--kinds", type=some_kinds, default=",".join(KINDS), show_default=True)
@click.option("--only", type=parse, multiple=True, metavar="KIND:N", help="These; may be repeated.")
def main(points: int | None, seed: int, kinds: list[str], only: tuple[Point, ...]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="frozen-"))
    expected = undisturbed(folder / "undisturbed")
    counts = {kind: len(passed) for kind, passed in expected.passed.items()}
    passed = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    click.echo(f"an undisturbed run takes {expected.seconds:.1f} s and can be frozen at: {passed}")
    chosen = only or [point for kills in choose(counts, kinds, points, seed) for point in kills]
    trials = []
    for trial in freeze(chosen, folder, expected):
        trials.append(trial)
        tell(trial)
    wrong = sum(bool(trial.wrong) for trial in trials)
    click.echo(
        f"{len(trials)} trials, {sum(bool(trial.stop) for trial in trials)} stopped and resumed, {wrong} failures"
    )
    if wrong:
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
