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
"""The flows and the ids of their steps. A flow calls only those behind it."""
VERDICTS = {"ask": (GOOD, FAILED), "check": (GOOD, BAD, FAILED), "review": (GOOD, BAD)}
WORK: dict[str, Record] = {
    "ask": {"ask": "one"},
    "check": {"check": "command", "with": TOLD},
    "review": {"review": "Continue?"},
}
NEEDS = (((), (), ()), ((), ("a",), ("b",)), (("b",), (), ("a",)), ((), ("a",), ()), (("c",), ("c",), ()))
"""What each of three items needs."""
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
    flows = [_flow(draw, name) for name in IDS]
    by_name = {flow["name"]: flow for flow in flows}
    kinds = dict(_leaves(by_name, "own", ""))
    final = [{"id": name, **WORK["check"]} for name in draw(st.sampled_from(["", "", "f", "fg"]))]
    flows[0]["finally"] = final
    kinds |= {f"finally.{step['id']}": "check" for step in final}
    results = {step: draw(st.lists(st.sampled_from(VERDICTS[kind]), min_size=1, max_size=4)) for step, kind in kinds.items()}
    copies = [*_copies(by_name, "own", "")]
    merges = {step: draw(st.lists(st.booleans(), min_size=1, max_size=3)) for step in copies}
    return Case(flows, results, merges)


def _flow(draw: st.DrawFn, name: str) -> Record:
    ids = IDS[name][: draw(st.integers(1, len(IDS[name])))]
    steps = list[Record]()
    for each in ids:
        steps.append(_step(draw, name, each))
        steps[-1]["next"] = _routes(draw, steps, ids)
    flow: Record = {"name": name, "steps": steps}
    measured = [step["id"] for step in steps if step.get("on_bad")]
    return flow | {"result": {"title": "All", "text": " ".join(f"{{{{ steps.{each} }}}}" for each in measured)}}


def _step(draw: st.DrawFn, flow: str, name: str) -> Record:
    calls = [*IDS][[*IDS].index(flow) + 1 :]
    kind = draw(st.sampled_from([*WORK, *calls]))
    step: Record = {"id": name, **(WORK.get(kind) or {"call": kind})}
    if draw(st.booleans()):
        step |= draw(st.sampled_from([{}, {"on_item_error": "cancel"}])) | _items(draw)
    if kind == "ask" and draw(st.integers(0, 3)) == 3:
        step |= {"isolate": "worktree"} | ({"merge": "none"} if "until" in step else {})
    if draw(st.integers(0, 2)) == 2:
        step["retry"] = {"attempts": draw(st.integers(2, 3)), "backoff_seconds": 0}
    if draw(st.integers(0, 2)) == 2:
        step["on_error"] = "skip"
    if kind not in ("ask", "review") and draw(st.integers(0, 3)) == 3:
        step["on_bad"] = "continue"
    return step


def _items(draw: st.DrawFn) -> Record:
    if draw(st.integers(0, 2)) == 2:
        items = [{"id": each, "needs": [*needs]} for each, needs in zip("abc", draw(st.sampled_from(NEEDS)), strict=True)]
        step: Record = {"for_each": items, "needs": "{{ item.needs }}"}
    else:
        step = {"for_each": [*range(draw(st.sampled_from([2, 1, 3, 0])))]}
    return step | ({"until": draw(st.sampled_from(UNTIL))} if draw(st.integers(0, 3)) == 3 else {})


def _routes(draw: st.DrawFn, steps: Sequence[Record], ids: str) -> list[Record]:
    """Routes to later steps and to ends, and bounded ones to the step itself and to those before."""
    name = steps[-1]["id"]
    onward: list[Record] = [{"to": each} for each in ids[len(steps) :]]
    onward += [{"end": "kept"}, {"end": "broken", "exit": 1}]
    routes = list[Record]()
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        when = draw(st.sampled_from(_conditions(steps)))
        if draw(st.integers(0, 3)) == 3:
            back = draw(st.sampled_from(ids[: len(steps)]))
            routes.append({"when": f"({when}) and steps.{name}.visits < 2", "to": back})
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
        reading += [f"{of}.met", f"not {of}.met"] if "until" in step else []
    other = [f"{of}.status == 'done'", "cycle == 1", "cycle > 1"]
    first = steps[0]
    if step is not first and "for_each" not in first and kind_of(first) == "check":
        other.append(f"steps.{first['id']}.verdict == 'failed'")
    return reading + other


def kind_of(step: Record) -> str:
    return next(kind for kind in ("ask", "check", "review", "call") if kind in step)


def _leaves(flows: dict[str, Record], name: str, within: str) -> Iterator[tuple[str, str]]:
    """The leaves below a flow and the kind of each."""
    for step in flows[name]["steps"]:
        if "call" in step:
            yield from _leaves(flows, step["call"], f"{within}{step['id']}/")
        else:
            yield f"{within}{step['id']}", kind_of(step)


def _copies(flows: dict[str, Record], name: str, within: str) -> Iterator[str]:
    """The steps below a flow whose copies are merged."""
    for step in flows[name]["steps"]:
        if "call" in step:
            yield from _copies(flows, step["call"], f"{within}{step['id']}/")
        if "isolate" in step and "merge" not in step:
            yield f"{within}{step['id']}"
