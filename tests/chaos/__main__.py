"""Chaos: disturb what a run and its Codex say to each other, and see that the run is right, or stops honestly.

    python -m tests.chaos                            20 seeds of every profile; about 10 minutes
    python -m tests.chaos --seeds 100 --first 1000   other ones
    python -m tests.chaos --only cruel:7             one again

Prints its seeds and counts; the exit code is 1 if anything was wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import click

from tests.chaos.profiles import DISTURBING, Case
from tests.chaos.trial import Trial, attempt, undisturbed
from tests.torture.evidence import Evidence

JOBS = 2


def chaos(cases: Sequence[Case], folder: Path, expected: Evidence) -> Iterator[Trial]:
    """Try all ``cases``, two at a time; what went wrong stays in ``folder``, the rest is removed."""
    with ThreadPoolExecutor(JOBS) as pool:
        trials = [pool.submit(attempt, case, folder / str(case).replace(":", "-"), expected) for case in cases]
        for future in as_completed(trials):
            trial = future.result()
            if not trial.wrong:
                shutil.rmtree(trial.folder, ignore_errors=True)
            yield trial


def tell_failure(trial: Trial) -> None:
    click.echo(f"WRONG at {trial.case}")
    for words in trial.wrong:
        click.echo(f"    {words}")
    click.echo(f"    again: python -m tests.chaos --only {trial.case}; kept: {trial.folder}, proxy/ says what was done")


def tell_counts(trials: Sequence[Trial]) -> None:
    for profile in sorted({trial.case.profile for trial in trials}):
        some = [trial for trial in trials if trial.case.profile == profile]
        stops = Counter(trial.stop for trial in some if trial.stop)
        reasons = ", ".join(f"{count} {reason}" for reason, count in stops.most_common())
        click.echo(
            f"{profile}: {len(some)} runs, {sum(not (trial.wrong or trial.stop) for trial in some)} right, "
            f"{stops.total()} stopped{f' ({reasons})' if reasons else ''}, "
            f"{sum(bool(trial.wrong) for trial in some)} wrong"
        )


def some_profiles(text: str) -> tuple[str, ...]:
    if text == "all":
        return DISTURBING
    if text not in DISTURBING:
        raise ValueError(f"{text}: none of all, {', '.join(DISTURBING)}")
    return (text,)


@click.command(help=__doc__)
@click.option("--seeds", default=20, show_default=True, help="How many seeds of each profile.")
@click.option("--first", default=1, show_default=True, help="The first seed.")
@click.option("--profile", "profiles", type=some_profiles, default="all", show_default=True)
@click.option("--only", type=Case.parse, multiple=True, metavar="PROFILE:SEED", help="This case; may be repeated.")
def main(seeds: int, first: int, profiles: tuple[str, ...], only: tuple[Case, ...]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    cases = only or [Case(profile, seed) for seed in range(first, first + seeds) for profile in profiles]
    expected = undisturbed(folder / "undisturbed")
    click.echo(f"{len(cases)} runs: " + " ".join(map(str, cases)))
    trials = []
    for trial in chaos(cases, folder, expected):
        trials.append(trial)
        if trial.stop:
            click.echo(f"{trial.case} stopped ({trial.stop}): {trial.reason}")
        if trial.wrong:
            tell_failure(trial)
    tell_counts(trials)
    if any(trial.wrong for trial in trials):
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
