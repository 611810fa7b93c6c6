"""What `batch` prints at its end: counts, the goals that need attention, and what to type next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codex_multi_role.batches.goal_results import NOT_STARTED, WAITING, WORST_FIRST, GoalResult
from codex_multi_role.errors import ExitCode
from codex_multi_role.presentation.outcome import exit_in_words, outcome_in_words, show_command, tokens_in_words
from codex_multi_role.presentation.wording import PROGRAM, duration, one_line, plural
from codex_multi_role.run_options import RunOptions

MAX_NAMED = 10


def summary_lines(
    results: Sequence[GoalResult], code: ExitCode, output: Path, runs_dir: Path, database_url: str = ""
) -> Iterator[str]:
    """The lines for people; ``output`` is the result file, ``database_url`` that of the workers, if any."""
    reached = sum(result.code == ExitCode.GOAL_REACHED for result in results)
    yield f"{reached} of {plural(len(results), 'goal')} reached"
    for words, number in Counter(map(_in_words, results)).most_common():
        yield f"  {number:<8,} {words}"
    totals = {name: _sum(results, name) for name in ("turns", "input_tokens", "output_tokens", "seconds")}
    yield f"  turns    {totals['turns']:,.0f}"
    yield f"  tokens   {tokens_in_words(totals['input_tokens'], totals['output_tokens'])}"
    yield f"  work     {duration(totals['seconds'])}"
    yield from _attention(results, runs_dir, database_url)
    yield f"  results  {output}"
    yield f"  exit     {exit_in_words(code)}"


def _sum(results: Iterable[GoalResult], name: str) -> float:
    return sum(result.totals.get(name, 0) for result in results)


def _in_words(result: GoalResult) -> str:
    match result.status:
        case "waiting":
            return "waiting"
        case "not_started":
            return f"not started: {outcome_in_words(result.outcome).lower()}"
    return outcome_in_words(result.outcome or result.status).lower()


def _attention(results: Sequence[GoalResult], runs_dir: Path, database_url: str) -> Iterator[str]:
    """The goals whose runs ended without reaching them, each with the command to look at it."""
    left = [
        each for each in results if each.code != ExitCode.GOAL_REACHED and each.status not in (WAITING, NOT_STARTED)
    ]
    left.sort(key=lambda result: WORST_FIRST.index(result.code) if result.code in WORST_FIRST else len(WORST_FIRST))
    for result in left[:MAX_NAMED]:
        yield f"  {result.id}: {one_line(': '.join(filter(None, (_in_words(result), result.reason))), 160)}"
        if database_url or Path(result.folder, "run.json").exists():
            yield f"    {show_command(result.run_id, runs_dir, database_url)}"
    if len(left) > MAX_NAMED:
        yield f"  and {len(left) - MAX_NAMED:,} more, see the results"


def resume_batch_command(params: Mapping[str, Any], name: str) -> str:
    """The command that continues the batch ``name``, which was started with these settings."""
    options = [f"--name={name}"]
    if params["runs_dir"].absolute() != RunOptions.runs_dir.absolute():
        options.append(f"--runs-dir={params['runs_dir']}")
    if params["shard"]:
        options.append(f"--shard={params['shard']}")
    if params["database_url"]:  # which also knows the store
        options += [f"--database-url={params['database_url']}", f"--queue={params['queue']}"]
    if params["output"]:
        options.append(f"--output={params['output']}")
    return " ".join(map(shlex.quote, [PROGRAM, "batch", str(params["file"]), "--resume", *options]))
