"""What `batch` prints at its end: counts, the goals that need attention, and what to type next."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.machines.batches.goal_results import NOT_STARTED, WAITING, WORST_FIRST, GoalResult
from codex_multi_role.extensions.machines.batches.planned_runs import PlannedRun
from codex_multi_role.extensions.machines.journal.database_url import place_of
from codex_multi_role.presentation.outcome import (
    cost_of_totals,
    exit_in_words,
    outcome_in_words,
    raised_limits,
    tokens_in_words,
)
from codex_multi_role.presentation.wording import duration, one_line, plural
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.folder import command_line
from codex_multi_role.run_options import LIMITS

MAX_NAMED = 10


def summary_lines(
    results: Sequence[GoalResult], code: ExitCode, output: Path, runs_dir: Path, database_url: str = ""
) -> Iterator[str]:
    """The lines for people; ``output`` is the result file, ``database_url`` that of the workers, if any."""
    reached = sum(result.code == ExitCode.GOAL_REACHED for result in results)
    yield f"{reached} of {plural(len(results), 'goal')} reached"
    for words, number in Counter(map(_in_words, results)).most_common():
        yield f"  {number:<8,} {words}"
    names = ("turns", "input_tokens", "output_tokens", "seconds")
    totals = {name: sum(float(each.totals.get(name, 0)) for each in results) for name in names}
    yield f"  turns    {totals['turns']:,.0f}"
    yield f"  tokens   {tokens_in_words(totals['input_tokens'], totals['output_tokens'])}"
    yield f"  cost     {cost_of_totals(sum((result.cost for result in results), Cost()).as_json())}"
    yield f"  work     {duration(totals['seconds'])}"
    yield from _attention(results, runs_dir, database_url)
    yield f"  results  {output}"
    yield f"  exit     {exit_in_words(code)}"


def _in_words(result: GoalResult) -> str:
    match result.status:
        case "waiting":
            return "waiting"
        case "not_started":
            return f"not started: {outcome_in_words(result.outcome).lower()}"
    return outcome_in_words(result.outcome or result.status).lower()


def _attention(results: Sequence[GoalResult], runs_dir: Path, database_url: str) -> Iterator[str]:
    """The goals whose runs ended without reaching them, each with the command to look at it."""
    begun = (each for each in results if each.status not in (WAITING, NOT_STARTED))
    left = [each for each in begun if each.code != ExitCode.GOAL_REACHED]
    left.sort(key=lambda result: WORST_FIRST.index(result.code) if result.code in WORST_FIRST else len(WORST_FIRST))
    for result in left[:MAX_NAMED]:
        yield f"  {result.id}: {one_line(': '.join(filter(None, (_in_words(result), result.reason))), 160)}"
        if database_url or Path(result.folder, "run.json").exists():
            place = place_of(database_url)
            yield f"    {command_line('show', result.run_id, runs_dir=runs_dir, place=place)}"
    if len(left) > MAX_NAMED:
        yield f"  and {len(left) - MAX_NAMED:,} more, see the results"


def resume_batch_command(params: Mapping[str, Any], name: str, higher: Iterable[str]) -> str:
    """The command that continues the batch ``name``, which was started with these settings, with `higher_limits`."""
    options = [f"--name={name}"]
    if params["shard"]:
        options.append(f"--shard={params['shard']}")
    if params["database_url"]:  # which also knows the store
        options += [f"--database-url={params['database_url']}", f"--queue={params['queue']}"]
    if params["output"]:
        options.append(f"--output={params['output']}")
    file = re.sub(r"^-(?=.)", "./-", str(params["file"]))
    return command_line("batch", file, "--resume", *options, *higher, runs_dir=params["runs_dir"])


def higher_limits(
    results: Mapping[str, GoalResult], planned: Iterable[PlannedRun], totals: Mapping[str, float]
) -> Iterator[str]:
    """The options without which a resumed batch would park again: what its runs suggest, and higher ``totals``."""
    limits: defaultdict[str, float] = defaultdict(float)
    parked = [run for run in planned if results[run.id].code == ExitCode.BUDGET_USED_UP]
    for run in parked:
        for what, value in raised_limits(read_object(Path(results[run.id].folder, "run.json"))).items():
            limits[what] = max(limits[what], float(value))
    for what, total in totals.items():
        more = (max(getattr(run.options.limits, LIMITS[what]), limits[f"max-{what}"]) for run in parked)
        wanted = sum(more) + sum(each.used[what] for each in results.values() if each.code != ExitCode.BUDGET_USED_UP)
        limits[f"total-max-{what}"] = wanted if wanted > total else 0
    for what, limit in filter(itemgetter(1), limits.items()):
        yield f"--{what}={math.ceil(limit * 100) / 100 if what.endswith('cost') else math.ceil(limit)}"
