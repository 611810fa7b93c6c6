"""Random flows, for every property: walks, verdicts, bounds, contracts, resume, reruns, kills.

A property says in its `Weights` what its flows are made of; all else is the same: up to three flows, each of which
calls those after it, and every key that decides the path on every kind of step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.support.random_templates import condition, text

Record = dict[str, Any]
T = TypeVar("T")

IDS = {"own": "abcd", "inner": "pqr", "innermost": "xy"}
"""The flows and the ids of their steps."""
CALLED = {"own": ("inner", "inner", "innermost"), "inner": ("innermost",), "innermost": ()}
RESULTS = {"ask": "said", "check": "verdict", "review": "approved", "call": "exit_code"}
"""A field of the result of each kind."""
GOOD_ITEMS = "results | selectattr('status', 'eq', 'done') | rejectattr('bad') | list | length"
UNTIL = (f"{GOOD_ITEMS} > 0", "results | selectattr('bad') | list | length > 0", f"{GOOD_ITEMS} > 1")
NEEDS = (((), (), ("a",)), ((), ("a",), ("b",)), (("b",), (), ("a",)), (("c",), ("c",), ()), ((), (), ("a", "b")))
"""What each of three items needs. The rules do not say which of several items that may start comes first."""
NUMBERS = ("0", "1", "2", "3", "1.5", "cycles", "inputs.most", "vars.most")
VALUES_FOR_CALLS = (1, "3", "{{ inputs.most }}", "{{ vars.most }}", "{{ cycles }}", "{{ cycle + 1 }}")
TWICE = {"attempts": 2, "backoff_seconds": 0}


@dataclass(frozen=True)
class Weights:
    """What the flows of a property are made of.

    ``kinds``: how often each kind of work occurs, beside the others: besides those of steps, a ``panel`` of roles at
    once, one ``chosen`` by data, and ``every`` role. ``keys``: in how many of 100 places each key, or what it names
    here, occurs; none by default. Some are not those of a step: items are ``found`` in an answer, a route leads
    ``back``, ``unbounded``, conditions are ``combined``, a call goes ``deeper`` into a flow that is under way.
    ``conditions``: how often each kind, beside the others. ``fields``: those of answers that templates read; a field
    of its own is read each time if the list is empty. ``writers``: the roles whose items work in copies.
    """

    kinds: Mapping[str, int]
    keys: Mapping[str, int]
    conditions: Mapping[str, int] = field(default_factory=lambda: {"results": 3, "states": 2, "counts": 1})
    roles: Sequence[str] = ("reader",)
    writers: Collection[str] = ()
    check: Record = field(default_factory=lambda: {"check": "command", "with": {"argv": ["true"]}})
    fields: Sequence[str] = ()

    def kinds_within(self, flow: str) -> list[str]:
        """Those of steps of ``flow``, as often as they occur; a call as the name of the called flow."""
        called = CALLED[flow] if "deeper" not in self.keys else tuple(IDS)
        kinds = [kind for kind, weight in self.kinds.items() if kind != "call" for _ in range(weight)]
        return kinds + [each for each in called for _ in range(self.kinds.get("call", 0))]

    @cached_property
    def kinds_of_conditions(self) -> list[str]:
        return [kind for kind, weight in self.conditions.items() for _ in range(weight)]


def numbered(strategy: st.SearchStrategy[T], number: int) -> T:
    """The example of this number, always the same."""
    found = list[T]()

    @seed(number)
    @settings(max_examples=10, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(example: T) -> None:
        found.append(example)

    draw()
    return found[-1]


@st.composite
def flows(draw: st.DrawFn, of: Weights) -> list[Record]:
    """Flows, the first of which runs."""
    drawing = _Drawing(draw, of)
    own = drawing.flow("own")
    final = draw(st.sampled_from(["", "", "f", "fg"])) if drawing.has("finally") else ""
    own["finally"] = [{"id": each, **of.check} for each in final]
    return [{**flow, "steps": [*map(grouped, flow["steps"])]} for flow in drawing.flows.values()]


def grouped(drawn: Record) -> Record:
    """The step as people write it: its keys in groups. ``drawn`` has them at one level."""
    step = {key: value for key, value in drawn.items() if key not in DRAWN}
    is_fan_out = "for_each" in step or isinstance(step.get("ask"), list)
    fan_out = {key: drawn[key] for key in OF_ITEMS if key in drawn}
    fan_out |= {"on_failure": "cancel"} if "cancel" in drawn else {}
    skipped: Record = {"allow": drawn["skip"]} if "skip" in drawn else {}
    if fan_out or (is_fan_out and skipped):
        items: Record = {"items": step["for_each"]} if "for_each" in step else {}
        step["for_each"] = items | fan_out | skipped
    step |= {} if is_fan_out else skipped
    if "measured" in drawn:
        step["allow"] = ["bad", *({"failed"} & {*step.get("allow", ())})]
    if limits := {key: drawn[key] for key in ("visits", "depth") if key in drawn}:
        step["limits"] = {**step.get("limits", {}), **limits}
    step |= {"isolate": {"merge": "none"}} if "kept" in drawn else {}
    asked = {key: drawn[key] for key in ("show", "after") if key in drawn}
    if asked:
        step["review"] = {"question": step["review"], **asked}
    return step


OF_ITEMS = ("max_items", "needs", "until", "concurrency")
DRAWN = frozenset({*OF_ITEMS, "skip", "measured", "cancel", "kept", "visits", "depth", "show", "after"})
"""The keys of steps that `grouped` puts into a group, or that stand for one."""


BOUNDED = Weights(
    kinds={"ask": 3, "check": 3, "review": 2, "call": 2, "panel": 2, "chosen": 2, "every": 2},
    keys={
        **{"for_each": 50, "found": 50, "needs": 25, "at_once": 75, "others_at_once": 75, "unknown": 50},
        **{"until": 25, "racing": 100, "cancel": 25, "copy": 25},
        **{"kept": 25, "retry": 33, "limits": 25, "late": 100, "visits": 40, "back": 50, "unbounded": 60},
        **{"deeper": 50, "combined": 50, "otherwise": 25, "finally": 50},
    },
    conditions={"results": 2, "counts": 5},
    roles=("planner", "developer", "reader"),
)
"""Every kind of step and limit; many have loops, not all of them bounded, and calls of themselves."""
STRAIGHT = replace(
    BOUNDED,
    kinds={"ask": 3, "check": 2, "review": 1, "call": 2, "every": 1},
    keys={"for_each": 50, "needs": 25, "at_once": 75, "others_at_once": 75, "retry": 33, "late": 100},
    conditions={},
)
"""Flows without routes."""
VISITED = replace(BOUNDED, kinds={"check": 1}, keys={"back": 60, "unbounded": 60, "combined": 60, "otherwise": 40})
"""One flow of checks."""


@dataclass(frozen=True)
class Case:
    """Flows, and what the work in them comes to: ``results`` of every leaf, by its place and the number of its
    execution, the last one for all further ones; likewise whether a copy can be merged.
    """

    flows: Sequence[Record]
    results: Mapping[str, Sequence[str]]
    merges: Mapping[str, Sequence[bool]]


VERDICTS = {
    "ask": ("good", "good", "failed"),
    "check": ("good", "good", "good", "bad", "failed"),
    "review": ("good", "good", "bad"),
}


@st.composite
def cases(draw: st.DrawFn, of: Weights) -> Case:
    """Flows with what their work comes to."""
    own, *called = draw(flows(of))
    steps = [*places(own, {flow["name"]: flow for flow in called})]
    steps += [(f"finally.{step['id']}", step) for step in own["finally"]]
    kinds = {place: kind_of(step) for place, step in steps if "call" not in step}
    results = {
        place: draw(st.lists(st.sampled_from(VERDICTS[kind]), min_size=1, max_size=4)) for place, kind in kinds.items()
    }
    copies = [place for place, step in steps if "isolate" in step]
    merges = {place: draw(st.lists(st.booleans(), min_size=1, max_size=3)) for place in copies}
    return Case([own, *called], results, merges)


@dataclass
class _Drawing:
    draw: st.DrawFn
    of: Weights
    flows: dict[str, Record] = field(default_factory=dict)
    _fresh: int = 0

    def has(self, key: str) -> bool:
        weight = self.of.keys.get(key, 0)
        return weight > 0 and self.draw(st.integers(0, 99)) >= 100 - weight

    def any(self, values: Sequence[T]) -> T:
        return self.draw(st.sampled_from(values))

    def number(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def text(self, paths: Sequence[str]) -> str:
        """A template that reads some of ``paths``."""
        return f"{{{{ {self.any(paths)} }}}}" if self.has("plain") else text(self.draw, paths, exact=self.has("exact"))

    # A flow.

    def flow(self, name: str) -> Record:
        """The flow, with those that it calls in ``flows``."""
        steps = list[Record]()
        flow = self.flows[name] = {"name": name, "inputs": {"most": 2}, "steps": steps}
        flow["vars"] = {"seen": "", "most": "{{ inputs.most }}"}
        if name != "own" and self.has("given"):
            flow["inputs"]["given"] = {"type": "list", "required": True}
        ids = IDS[name][: self.number(1, len(IDS[name]))]
        for each in ids:
            steps.append(self.step(each, name, steps))
            steps[-1]["next"] = self.routes(steps, ids)
        paths = self.paths(steps)
        read = [f"{{{{ steps.{step['id']} }}}}" for step in steps if "measured" in step]
        read += [self.text(paths)] if paths and self.has("result") else []
        if read:
            flow["result"] = {"title": "All", "text": " ".join(read)}
        return flow

    def routes(self, steps: Sequence[Record], ids: str) -> list[Record]:
        """Routes to later steps and to ends; back to the step itself and to those before, bounded or not."""
        onward: list[Record] = [{"to": each} for each in ids[len(steps) :]]
        ends: list[Record] = [{"end": "kept"}, {"end": "broken", "exit": 1}]
        onward = [*onward, *ends] if self.of.keys.get("ends", 100) else onward[:1]
        routes = list[Record]()
        for _ in range(self.any([0, 0, 1, 2]) if onward and self.of.conditions else 0):
            when = self.condition(steps)
            if self.has("back"):
                back = self.any(ids[: len(steps)])
                bounded = "" if self.has("unbounded") else f" and steps.{back}.visits < 2"
                routes.append({"when": f"({when}){bounded}" if bounded else when, "to": back})
            else:
                routes.append({"when": when, **self.any(onward)})
        otherwise = [{"to": each} for each in ids] + onward if "unbounded" in self.of.keys else onward[:1]
        return [*routes, self.any(otherwise)] if otherwise and self.has("otherwise") else routes

    # A step.

    def step(self, name: str, flow: str, before: Sequence[Record]) -> Record:
        kind = self.any(self.of.kinds_within(flow))
        step: Record = {"id": name, **self.work(kind, before)}
        if kind in ("ask", "check", "review", *IDS) and self.has("for_each"):
            step |= self.items(before)
        step |= self.around(step, kind)
        step |= self.templates(step, before)
        if self.is_apart(step, kind):
            kept = "until" in step or self.has("kept")
            step |= {"isolate": "worktree"} | ({"kept": True} if kept else {})
        return step

    def work(self, kind: str, before: Sequence[Record]) -> Record:
        match kind:
            case "ask":
                return {"ask": self.any(self.of.roles)}
            case "panel":
                return {"ask": self.several_roles()}
            case "chosen":
                roles = self.several_roles()
                return {"ask": "{{ item.role }}", "roles": roles, "for_each": [{"role": each} for each in roles]}
            case "every":
                return {"ask": "*"}
            case "check":
                return dict(self.of.check)
            case "review":
                late = {"after": {"seconds": 5, "answer": "reject"}} if self.has("late") else {}
                return {"review": "Continue?", **late}
        return self.call(kind, before)

    def several_roles(self) -> list[str]:
        least = min(2, len(self.of.roles))
        return self.draw(st.lists(st.sampled_from(self.of.roles), min_size=least, unique=True))

    def call(self, flow: str, before: Sequence[Record]) -> Record:
        called = self.flows.get(flow) or self.flow(flow)
        step: Record = {"call": flow, "with": {}}
        if "deeper" in self.of.keys:
            step["depth"] = self.number(1, 2)
        if self.has("deeper"):
            step["with"] = {"most": self.any(VALUES_FOR_CALLS)}
        if "given" in called["inputs"]:
            paths = self.paths(before)
            step["with"] = {"given": f"{{{{ {self.any(paths)} }}}}" if paths else []}
        return step

    def items(self, before: Sequence[Record]) -> Record:
        paths = self.paths(before)
        if paths and self.has("found"):
            step: Record = {"for_each": f"{{{{ {self.any(paths)} }}}}", "max_items": self.number(1, 3)}
        elif self.has("needs"):
            needs = zip("abc", self.any(NEEDS), strict=True)
            step = {"for_each": [{"id": each, "needs": [*ids]} for each, ids in needs]}
        else:
            step = {"for_each": [*range(self.any([2, 1, 3, 0]))]}
        if (isinstance(step["for_each"], str) and self.has("needs")) or (step["for_each"] and step["for_each"][0] != 0):
            step["needs"] = "{{ item.needs }}"
        return step

    def around(self, step: Record, kind: str) -> Record:
        """The keys around the work of ``step``."""
        found: Record = {}
        of_items = step.get("for_each", step["ask"] if isinstance(step.get("ask"), list) else None)
        if of_items is not None:
            found |= self.around_items(step, of_items)
        if kind != "review" and self.has("retry"):
            found["retry"] = {**TWICE, "attempts": self.number(2, 3)}
        if self.has("skip"):
            of_work = [["failed"]] if "ask" in step else [["bad", "failed"], ["failed"]]
            found["skip"] = self.any(of_work if of_items is None or "ask" in step else [*of_work, ["bad"]])
        may_end = "until" not in found and "failed" not in found.get("skip", ())
        if of_items is not None and may_end and self.has("cancel"):
            found["cancel"] = True
        if kind in ("check", *IDS) and self.has("measured"):
            found["measured"] = True
        if kind not in ("review", *IDS) and self.has("limits"):
            found["limits"] = {"turn_seconds" if "ask" in step else "seconds": 2}
        if self.has("visits"):
            found["visits"] = self.number(1, 3)
        if of_items is None and kind != "every" and self.has("set"):
            found["set"] = {"seen": f"{{{{ steps.{step['id']}.{RESULTS[kind_of(step)]} | default('') }}}}"}
        return found

    def around_items(self, step: Record, items: object) -> Record:
        found: Record = {"concurrency": 1} if self.has("in_order") else {}
        if items and self.has("until"):
            found["until"] = self.any(UNTIL[: len(items) + 1] if isinstance(items, list) else UNTIL)
            found |= {} if self.has("racing") else {"concurrency": 1}
        if "concurrency" not in found and self.has("at_once" if "ask" in step else "others_at_once"):
            unknown = ["{{ inputs.most }}", f"{{{{ steps.{step['id']}.number }}}}"] if self.has("unknown") else []
            found["concurrency"] = self.any([2, 3, 1, *unknown])
        return found

    def is_apart(self, step: Record, kind: str) -> bool:
        """Whether it works in copies, as it must if several write at once. None can be merged into another copy."""
        roles = step.get("roles") or (step["ask"] if isinstance(step.get("ask"), list) else [step.get("ask")])
        if ("for_each" in step or len(roles) > 1) and {*roles} & {*self.of.writers}:
            return True
        may_be = kind in ("ask", "panel", "chosen") or (kind in IDS and not has_copies(kind, self.flows, []))
        return may_be and self.has("copy")

    def templates(self, step: Record, before: Sequence[Record]) -> Record:
        """What the work of ``step`` reads."""
        found: Record = {}
        paths = self.paths(before) + ["steps." + each["id"] + ".stdout" for each in before if self.has_output(each)]
        if isinstance(step.get("for_each"), str) and "ask" in step and self.has("prompt"):
            found["prompt"] = self.any(["Do {{ item.t }}.", "Do {{ item.t }}, {{ item.n - 1 }}.", "Do {{ item }}."])
        elif paths and "ask" in step and self.has("prompt"):
            found["prompt"] = self.text(paths)
        elif paths and "ask" in step and self.has("with"):
            found["with"] = {"a": self.text(paths), "b": [self.text(paths)]}
        elif paths and step.get("check") == "answer":
            found["with"] = {"text": self.text(paths)}
        elif paths and "review" in step and self.has("show"):
            found["show"] = self.text(paths)
        return found

    # What may be read.

    def paths(self, steps: Sequence[Record]) -> list[str]:
        """Those of answers that a template may read after ``steps``."""
        found = list[str]()
        for step in steps:
            several = "for_each" in step or isinstance(step.get("ask"), list)
            of = f"steps.{step['id']}" + (".results[0]" if several else "")
            if step.get("ask", "*") != "*" and not (several and self.of.keys.get("exact")):
                found += self.fields(of)
            if self.of.fields and isinstance(step.get("ask"), list):
                found += self.fields(f"{of.removesuffix('.results[0]')}.by_role.{step['ask'][0]}")
            elif self.of.fields and "call" in step and not several:
                found += [f"{of}.steps.{each.removeprefix('steps.')}" for each in self.paths_within(step["call"])]
        return found

    def paths_within(self, flow: str) -> list[str]:
        """Those of the first step of a called flow, if that asks one role."""
        first = self.flows[flow]["steps"][:1]
        return self.paths([each for each in first if "for_each" not in each and isinstance(each.get("ask"), str)])

    def has_output(self, step: Record) -> bool:
        return step.get("check") == "command" and "for_each" not in step and self.has("stdout")

    def fields(self, of: str) -> list[str]:
        self._fresh += 1
        return [f"{of}.{each}" for each in self.of.fields or [f"f{self._fresh}"]]

    def condition(self, steps: Sequence[Record]) -> str:
        """One that may stand after the last of ``steps``."""
        one = self.comparison(steps)
        if not self.has("combined"):
            return one
        form = self.any(["not ({0})", "({0}) and ({1})", "({0}) or ({1})"])
        return form.format(one, self.comparison(steps) if "{1}" in form else "")

    def comparison(self, steps: Sequence[Record]) -> str:
        *_, step = steps
        paths = self.paths(steps)
        match self.any(self.of.kinds_of_conditions):
            case "results" if step.get("ask") != "*":
                return self.any(of_results(step))
            case "counts":
                counted = self.any(["cycle", *(f"steps.{each['id']}.visits" for each in steps)])
                sides = [counted, self.any(NUMBERS)]
                return f" {self.any(['<', '<=', '>', '>=', '==', '!='])} ".join(sides[:: self.any([1, -1])])
            case "answers" if paths:
                return condition(self.draw, paths, exact=self.has("exact"))
        other = ["cycles == 1", "cycles > 1", "vars.seen == 'failed'", "vars.seen == ''"]
        other += [f"steps.{step['id']}.status == 'done'", f"steps.{step['id']}.error == ''"]
        first = steps[0]
        if step is not first and "for_each" not in first and first.get("check") == "command":
            other.append(f"steps.{first['id']}.verdict == 'failed'")
        return self.any(other)


def of_results(step: Record) -> list[str]:
    """Conditions that read the result of ``step``."""
    of = f"steps.{step['id']}"
    if "for_each" not in step and not isinstance(step.get("ask"), list):
        return {
            "ask": [f"{of}.said | default('') == 'ok'"],
            "check": [f"{of}.verdict == 'ok'", f"{of}.verdict == 'failed'"],
            "review": [f"{of}.approved", f"not {of}.approved"],
            "call": [f"{of}.exit_code == 1", f"{of}.exit_code == 0", f"{of}.exit_code == 3"],
        }[kind_of(step)]
    found = [f"{of}.results | selectattr('bad') | list | length > 0", f"{of}.failed > 0"]
    found += [f"{of}.results | selectattr('status', 'eq', 'done') | list | length > 1"]
    if "call" in step:
        found += [f"{of}.results | selectattr('exit_code', 'defined') | selectattr('exit_code', 'eq', 3) | list"]
    return found + ([f"{of}.met", f"not {of}.met"] if "until" in step else [])


def kind_of(step: Record) -> str:
    return next(kind for kind in RESULTS if kind in step)


def has_copies(name: str, flows: Mapping[str, Record], within: Sequence[str]) -> bool:
    """Whether a step below the flow ``name`` has a copy."""
    steps = flows[name]["steps"] if name not in within else []
    return any(
        "isolate" in step or ("call" in step and has_copies(step["call"], flows, [*within, name])) for step in steps
    )


def places(flow: Record, called: Mapping[str, Record], within: str = "") -> Iterator[tuple[str, Record]]:
    """Every step below ``flow``, with its place, ``s/x``."""
    for step in flow["steps"]:
        yield f"{within}{step['id']}", step
        if "call" in step:
            yield from places(called[step["call"]], called, f"{within}{step['id']}/")
