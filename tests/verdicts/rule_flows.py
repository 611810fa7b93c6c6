"""Random flows of scripted work, for a comparison of the engine with the rules.

Flows call others two levels deep. Every key that decides the path may occur on every kind of step, and every leaf may
be good, bad, or failed at each execution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.verdicts.rules import BAD, FAILED, GOOD
from tests.verdicts.table import TOLD

Record = dict[str, Any]

IDS = {"own": "abc", "inner": "pqr", "innermost": "xy"}
"""The flows and the ids of their steps."""
CALLS = {"own": ("inner", "inner", "innermost"), "inner": ("innermost", "innermost"), "innermost": ()}
"""The flows that each of them may call."""
VERDICTS = {
    "ask": (GOOD, GOOD, FAILED),
    "check": (GOOD, GOOD, GOOD, BAD, FAILED),
    "review": (GOOD, GOOD, BAD),
}
WORK: dict[str, Record] = {
    "ask": {"ask": "reader"},
    "check": {"check": "command", "with": TOLD},
    "review": {"review": "Continue?"},
}
RESULTS = {"ask": "said", "check": "verdict", "review": "approved"}
"""A field of the result of each."""
NEEDS = (((), (), ("a",)), ((), ("a",), ("b",)), (("b",), (), ("a",)), (("c",), ("c",), ()), ((), (), ("a", "b")))
"""What each of three items needs. The rules do not say which of several items that may start comes first."""
UNTIL = (
    "results | selectattr('status', 'eq', 'done') | list | length > 0",
    "results | selectattr('bad') | list | length > 0",
    "results | selectattr('status', 'eq', 'done') | rejectattr('bad') | list | length > 1",
)


@dataclass(frozen=True)
class Case:
    """Flows, the first of which runs, and the scripted work as in `Run`."""

    flows: Sequence[Record]
    results: dict[str, list[str]]
    merges: dict[str, list[bool]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    flows: dict[str, Record] = {}
    own = _flow(draw, "own", flows)
    own["finally"] = [{"id": each, **WORK["check"]} for each in draw(st.sampled_from(["", "", "f", "fg"]))]
    steps = [*_steps(own, flows), *((f"finally.{step['id']}", step) for step in own["finally"])]
    kinds = {place: kind_of(step) for place, step in steps}
    copies = [place for place, step in steps if "isolate" in step]
    results = {
        place: draw(st.lists(st.sampled_from(VERDICTS[kind]), min_size=1, max_size=4))
        for place, kind in kinds.items()
        if kind != "call"
    }
    merges = {place: draw(st.lists(st.booleans(), min_size=1, max_size=3)) for place in copies}
    return Case([own, *flows.values()], results, merges)


def _flow(draw: st.DrawFn, name: str, called: dict[str, Record]) -> Record:
    """The flow, which adds those that it calls to ``called``."""
    ids = IDS[name][: draw(st.integers(1, len(IDS[name])))]
    steps = list[Record]()
    for each in ids:
        steps.append(_step(draw, each, name, called))
        steps[-1]["next"] = _routes(draw, steps, ids)
    measured = " ".join(f"{{{{ steps.{step['id']} }}}}" for step in steps if "on_bad" in step)
    return {"name": name, "vars": {"seen": ""}, "steps": steps, "result": {"title": "All", "text": measured}}


def _step(draw: st.DrawFn, name: str, flow: str, called: dict[str, Record]) -> Record:
    kind = draw(st.sampled_from([*WORK, *CALLS[flow]]))
    if kind in IDS and kind not in called:
        called[kind] = _flow(draw, kind, called)
    step: Record = {"id": name, **(WORK.get(kind) or {"call": kind})}
    if draw(st.booleans()):
        step |= draw(st.sampled_from([{}, {"on_item_error": "cancel"}])) | _items(draw)
    may_copy = kind == "ask" or (kind in IDS and not _has_copies(called[kind], called))
    if may_copy and draw(st.integers(0, 3)) == 3:
        kept = "until" in step or draw(st.integers(0, 3)) == 3
        step |= {"isolate": "worktree"} | ({"merge": "none"} if kept else {})
    if draw(st.integers(0, 2)) == 2:
        step["retry"] = {"attempts": draw(st.integers(2, 3)), "backoff_seconds": 0}
    if draw(st.integers(0, 2)) == 2:
        step["on_error"] = "skip"
    if kind not in ("ask", "review") and draw(st.integers(0, 3)) == 3:
        step["on_bad"] = "continue"
    if "for_each" not in step and draw(st.integers(0, 4)) == 4:
        step["set"] = {"seen": f"{{{{ steps.{name}.{RESULTS.get(kind, 'exit_code')} | default('') }}}}"}
    return step


def _has_copies(flow: Record, called: dict[str, Record]) -> bool:
    """Whether a step below ``flow`` has a copy, which cannot be merged into a copy."""
    return any("isolate" in step for _, step in _steps(flow, called))


def _items(draw: st.DrawFn) -> Record:
    if draw(st.integers(0, 2)) == 2:
        items = [
            {"id": each, "needs": [*needs]} for each, needs in zip("abc", draw(st.sampled_from(NEEDS)), strict=True)
        ]
        step: Record = {"for_each": items, "needs": "{{ item.needs }}"}
    else:
        step = {"for_each": [*range(draw(st.sampled_from([2, 1, 3, 0])))]}
    return step | ({"until": draw(st.sampled_from(UNTIL))} if draw(st.integers(0, 3)) == 3 else {})


def _routes(draw: st.DrawFn, steps: Sequence[Record], ids: str) -> list[Record]:
    """Routes to later steps and to ends, and bounded ones to the step itself and to those before."""
    onward: list[Record] = [{"to": each} for each in ids[len(steps) :]]
    onward += [{"end": "kept"}, {"end": "broken", "exit": 1}]
    routes = list[Record]()
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        when = draw(st.sampled_from(_conditions(steps)))
        if draw(st.integers(0, 3)) == 3:
            back = draw(st.sampled_from(ids[: len(steps)]))
            routes.append({"when": f"({when}) and steps.{back}.visits < 2", "to": back})
        else:
            routes.append({"when": when, **draw(st.sampled_from(onward))})
    return routes


def _conditions(steps: Sequence[Record]) -> list[str]:
    """Conditions that read the result of the last of ``steps``, and others that do not."""
    *_, step = steps
    of = f"steps.{step['id']}"
    reading = {
        "ask": [f"{of}.said | default('') == 'ok'"],
        "check": [f"{of}.verdict == 'ok'", f"{of}.verdict == 'failed'"],
        "review": [f"{of}.approved", f"not {of}.approved"],
        "call": [f"{of}.exit_code == 1", f"{of}.exit_code == 0", f"{of}.exit_code == 3"],
    }[kind_of(step)]
    if "for_each" in step:
        reading = [f"{of}.results | selectattr('bad') | list | length > 0", f"{of}.failed > 0"]
        reading += [f"{of}.results | selectattr('status', 'eq', 'done') | list | length > 1"]
        if "call" in step:
            reading += [f"{of}.results | selectattr('exit_code', 'defined') | selectattr('exit_code', 'eq', 3) | list"]
        reading += [f"{of}.met", f"not {of}.met"] if "until" in step else []
    other = ["cycles == 1", "cycles > 1", "vars.seen == 'failed'", "vars.seen == ''"]
    if "for_each" not in step:
        other += [f"{of}.status == 'done'", f"{of}.error == ''"]
    first = steps[0]
    if step is not first and "for_each" not in first and kind_of(first) == "check":
        other.append(f"steps.{first['id']}.verdict == 'failed'")
    return reading + other


def kind_of(step: Record) -> str:
    return next(kind for kind in ("ask", "check", "review", "call") if kind in step)


def _steps(flow: Record, called: dict[str, Record], within: str = "") -> Iterator[tuple[str, Record]]:
    """Every step below ``flow``, with its place."""
    for step in flow["steps"]:
        yield f"{within}{step['id']}", step
        if "call" in step:
            yield from _steps(called[step["call"]], called, f"{within}{step['id']}/")
