"""The path of a run through its flows, from the visits of their steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from codex_multi_role.catalog import FlowSpec
from codex_multi_role.flow.routing import End
from codex_multi_role.flow.words import arrows
from codex_multi_role.report.story import Visit
from codex_multi_role.run_folder.events import RunEnded

_VISIT_AND_INDEX = r"\.\d+(\.\d+)?"


@dataclass
class PathTaken:
    """Path through one flow in all its walks: ``walks``, ``visits`` of each step, and how often ``ways`` were taken.

    ``stopped``: step and end of the run's own walk if it did not finish with one of the flow's ends.
    """

    walks: int = 0
    visits: Counter[str] = field(default_factory=Counter)
    ways: Counter[tuple[str, str | End]] = field(default_factory=Counter)
    stopped: tuple[str, End] | None = None


def paths_taken(
    flows: Mapping[str, FlowSpec], name: str, visits: Iterable[Visit], ended: RunEnded | None
) -> dict[str, PathTaken]:
    """Return the paths by flow. A key identifies a called flow's walk; its end is known only if there is no choice."""
    walks: dict[str, list[str]] = {}
    for visit in visits:
        key, _, step = visit.step.rpartition("/")
        walks.setdefault(key, []).append(step)
    known = {"": flows.get(name)}
    paths = {each: PathTaken() for each in flows}
    for key in sorted(walks, key=lambda key: key.count("/")):
        flow = known[key] = known[key] if key in known else _called(flows, known, key)
        if flow is not None:
            _walk(paths[flow.name], flow, walks[key])
            _end(paths[flow.name], flow, walks[key][-1], ended if not key else None, own=not key)
    return paths


def _called(flows: Mapping[str, FlowSpec], known: Mapping[str, FlowSpec | None], key: str) -> FlowSpec | None:
    """The flow that the unit at the end of ``key`` called."""
    above, _, unit = key.rpartition("/")
    caller = known.get(above)
    steps = caller.steps if caller is not None else ()
    found = [step for step in steps if step.call and re.fullmatch(re.escape(step.id) + _VISIT_AND_INDEX, unit)]
    longest = max(found, key=lambda step: len(step.id), default=None)  # ids may contain dots
    return flows.get(longest.call or "") if longest is not None else None


def _walk(path: PathTaken, flow: FlowSpec, steps: list[str]) -> None:
    names = {step.id for step in flow.steps}
    path.walks += 1
    path.visits.update(step for step in steps if step in names)
    path.ways.update(pairwise(steps))


def _end(path: PathTaken, flow: FlowSpec, last: str, ended: RunEnded | None, *, own: bool) -> None:
    index = next((number for number, step in enumerate(flow.steps) if step.id == last), None)
    if index is None:
        return
    ends = [arrow.to for arrow in arrows(flow, index) if isinstance(arrow.to, End)]
    if not own:
        if len(set(ends)) == 1:
            path.ways[last, ends[0]] += 1
    elif ended is not None:
        taken = [end for end in ends if (end.outcome, end.exit_code) == (ended.outcome, ended.exit_code)]
        if taken:
            path.ways[last, taken[0]] += 1
        else:
            path.stopped = (last, End(ended.outcome, ended.exit_code))
