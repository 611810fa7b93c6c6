"""Break each promise on purpose, in a private copy of the package, and see that a test notices.

    python -m tests.promises                  all of them
    python -m tests.promises --promise 3      those of one promise of the design
    python -m tests.promises --only symlink   those whose clause has the word

First every test that is to notice something must pass on the whole package. The breakages are data, in the folder of
that name. Prints its counts; the exit code is 1 if a breakage went unnoticed, or no longer applies.

A broken package may end processes that are not its own. Keep it from yours, as root:

    unshare --pid --fork --mount-proc --kill-child python -m tests.promises
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import click

from tests.promises.breakage import Breakage
from tests.promises.breakages import BREAKAGES
from tests.promises.trial import Trial, attempt, copy_of_tree, run_tests

JOBS = 2
TESTS_AT_ONCE = 40


def failing_unbroken(breakages: Sequence[Breakage], folder: Path) -> list[str]:
    """Those of the tests that do not pass on the package as it is."""
    ids = sorted({test for breakage in breakages for test in breakage.ids()})
    root = copy_of_tree(folder)
    wrong: list[str] = []
    for start in range(0, len(ids), TESTS_AT_ONCE):
        endings, said = run_tests(root, ids[start : start + TESTS_AT_ONCE])
        wrong += [f"{test} {' and '.join(sorted(ended))}" for test, ended in endings.items() if ended != {"passed"}]
        wrong += [] if endings else [said]
    return wrong


def break_each(breakages: Sequence[Breakage], folder: Path) -> Iterator[Trial]:
    with ThreadPoolExecutor(JOBS) as pool:
        trials = []
        for number, breakage in enumerate(breakages):
            place = folder / str(number)
            place.mkdir()
            trials.append(pool.submit(attempt, breakage, place))
        for future in as_completed(trials):
            yield future.result()


@click.command(help=__doc__)
@click.option("--promise", type=int, multiple=True, help="Its number; may be repeated.")
@click.option("--only", default=("",), multiple=True, help="A part of the clause; may be repeated.")
def main(promise: tuple[int, ...], only: tuple[str, ...]) -> None:
    chosen = [
        each
        for each in BREAKAGES
        if (not promise or each.promise in promise) and any(words in each.clause for words in only)
    ]
    with tempfile.TemporaryDirectory(prefix="promises-", ignore_cleanup_errors=True) as name:
        (whole := Path(name) / "whole").mkdir()
        wrong = failing_unbroken(chosen, whole)
        for words in wrong:
            click.echo(f"NOT PASSED UNBROKEN {words}")
        trials = []
        for trial in break_each(chosen, Path(name)):
            trials.append(trial)
            click.echo(f"{'UNNOTICED' if trial.wrong else 'noticed'} {trial.breakage}")
            if trial.wrong:
                click.echo(f"    {trial.wrong}")
    counts = Counter(trial.breakage.promise for trial in trials)
    unnoticed = sum(bool(trial.wrong) for trial in trials)
    of_each = ", ".join(f"{count} of promise {number}" for number, count in sorted(counts.items()))
    click.echo(f"{len(trials)} breakages ({of_each}), {unnoticed} unnoticed; {len(wrong)} tests did not pass unbroken")
    if wrong or unnoticed:
        sys.exit(1)


if __name__ == "__main__":
    main()
