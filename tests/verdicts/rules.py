"""An interpreter of the rules in DESIGN, written from its text: what a run of scripted work must end with.

It is independent of the engine, so that the two can be compared. It is limited to what decides the path: no templates
except conditions, no limits, one item at a time. The comments quote DESIGN, chapters "Flow language" (F)
and "Verdicts and contracts" (V), or the decisions R1 to R5: retries, called flows, fan-outs, final checks, states.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jinja2

Record = Mapping[str, Any]

GOOD, BAD, FAILED, SKIPPED = "good", "bad", "failed", "skipped"
"""A step or item did its work with a good or a bad result, could not do its work, or was not carried out."""
NOT_RESULTS = ("visits", "status", "error", "comment")
"""V2: "any `when` there that names a field of `steps.<id>` other than" these reads the result."""
FAILURES = {"ask": "bad_request", "check": "check_failed"}
"""The outcome of a run that a failed leaf ends, as it is scripted."""
_JINJA = jinja2.Environment(autoescape=False)


@dataclass(frozen=True)
class Ended:
    """The end of a flow."""

    exit_code: int
    outcome: str


class FlowFailed(Exception):
    """A failed step that its flow does not tolerate."""


@dataclass(frozen=True)
class Result:
    """What a step or item leaves. ``fields``: those that conditions see; ``outcome``: the reason of a failure."""

    verdict: str
    fields: Record = field(default_factory=dict)
    outcome: str = ""

    @property
    def seen(self) -> dict[str, Any]:
        """V: "A bad item […] keeps `status: done`, has `bad: true`". R5: an allowed failure of an item shows."""
        status = self.verdict if self.verdict in (FAILED, SKIPPED) else FAILED if self.outcome else "done"
        return {**self.fields, "status": status, "bad": self.verdict == BAD, "error": self.outcome}


@dataclass
class Run:
    """One run of ``flows``, by name.

    ``results``: what a leaf leaves, by its step as in ``path`` and by the number of its execution; the last one is
    that of all further ones. ``merges``: likewise, whether a copy is merged.
    ``path``: the steps in the order in which they started. ``work``: the leaves that were carried out, as
    ``<step>.<visit>``, with the index of the item, below the calling step.
    """

    flows: Mapping[str, Record]
    results: Mapping[str, Sequence[str]]
    merges: Mapping[str, Sequence[bool]] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    work: list[str] = field(default_factory=list)
    _merged: Counter[str] = field(default_factory=Counter)
    _worked: Counter[str] = field(default_factory=Counter)

    def end(self, name: str) -> Ended:
        """The end of the run of the flow ``name``."""
        try:
            ended = self._flow(self.flows[name], "")
        except FlowFailed as failure:
            ended = Ended(3, str(failure))
        # F: "`finally:` of a flow: checks […], run once at its end, also after a failure". R4: in order.
        final = [self._leaf("check", f"finally.{step['id']}") for step in self.flows[name].get("finally", ())]
        # F: "one that fails turns exit 0 into 1". R4: bad, or could not run; other exits stay.
        is_clean = all(result.verdict == GOOD for result in final)
        return ended if is_clean or ended.exit_code else Ended(1, "finally_failed")

    # A flow.

    def _flow(self, flow: Record, within: str) -> Ended:
        """Walk ``flow``, which has a state of its own (F: "a sub-flow with its own state")."""
        steps: Sequence[Record] = flow["steps"]
        ids = [step["id"] for step in steps]
        states: dict[str, dict[str, Any]] = {each: {"visits": 0} for each in ids}
        inputs = flow.get("inputs", {})
        variables = {each: value_of(str(text), inputs=inputs) for each, text in flow.get("vars", {}).items()}
        index = 0
        while index < len(steps):  # F: "A flow is steps in order."
            step, name = spread(steps[index]), ids[index]
            visit = states[name]["visits"] + 1
            key = f"{within}{name}.{visit}"
            self.path.append(step_of(key))
            result = self._fan_out(step, key) if "for_each" in step else self._alone(step, key)
            # R2: "A failed step (exit 3) […] that nobody inside tolerates ends the called flow at that point".
            if result.verdict == FAILED and not skips(step):
                raise FlowFailed(result.outcome)
            states[name] = {**result.seen, "visits": visit}
            # F: `set`: "run variables after the step".
            variables |= {each: value_of(text, steps=states) for each, text in step.get("set", {}).items()}
            known = {"steps": states, "vars": variables, "inputs": inputs, "cycle": states[ids[0]]["visits"]}
            # F: "the first `next` entry whose `when` holds, otherwise the following step".
            taken = (each for each in step["next"] if holds(each.get("when", "true"), **known))
            route = next(taken, None)
            if result.verdict == BAD and not is_saved(step, route):
                return Ended(1, f"{name}_failed")  # V3: "the flow ends with exit 1"
            if route and "end" in route:
                return Ended(route.get("exit", 0), route["end"])
            index = ids.index(route["to"]) if route else index + 1
        return Ended(0, "success")

    # One step or item.

    def _alone(self, step: Record, key: str) -> Result:
        """The result of a step without `for_each`. Merging its copy is not part of the work that `retry` repeats."""
        result = self._tried(step, key)
        return self._merge(result, key) if merges(step) else result

    def _tried(self, step: Record, key: str) -> Result:
        """V1: "`retry` tries again", after a bad result and after a failure. A person is not asked the same again."""
        attempts = 1 if "review" in step else step.get("retry", {}).get("attempts", 1)
        result = self._work(step, key)
        for _ in range(attempts - 1):
            if result.verdict != GOOD:
                result = self._work(step, key)  # R1: everything below a call is carried out again
        return result

    def _work(self, step: Record, key: str) -> Result:
        if "call" not in step:
            return self._leaf(next(kind for kind in ("ask", "check", "review") if kind in step), key)
        # R2: a failure inside "is raised always, and is caught at the caller's unit alone".
        try:
            ended = self._flow(self.flows[step["call"]], f"{key}/")
        except FlowFailed as failure:
            return Result(FAILED, {"exit_code": 3}, str(failure))
        # V: "a call an end with `exit: 1`"; V3: "In a called flow that is the call's verdict".
        return Result(BAD if ended.exit_code else GOOD, {"exit_code": ended.exit_code})

    def _leaf(self, kind: str, key: str) -> Result:
        self.work.append(key)
        step = step_of(key)
        self._worked[step] += 1
        verdict = nth(self.results[step], self._worked[step])
        if verdict == FAILED:
            return Result(FAILED, outcome=FAILURES[kind])
        if kind == "review":
            return Result(verdict, {"approved": verdict == GOOD})
        return Result(verdict, {"verdict": {GOOD: "ok", BAD: "failed"}[verdict]} if kind == "check" else {"said": "ok"})

    def _merge(self, result: Result, key: str) -> Result:
        """V: "A step or item whose copy cannot be merged has failed (3)". A failed one has no result to merge."""
        if result.verdict in (FAILED, SKIPPED):
            return result
        step = step_of(key)
        self._merged[step] += 1
        if nth(self.merges.get(step, [True]), self._merged[step]):
            return result
        return Result(FAILED, result.fields, "merge_conflicts")

    # Fan-outs.

    def _fan_out(self, step: Record, key: str) -> Result:
        """V: "On a fan-out", the `allow` of `for_each` "and `retry` concern items"."""
        until = step["for_each"].get("until")
        done: dict[int, Result] = {}  # by the index of the item
        waiting = [*range(len(step["for_each"]["items"]))]
        is_tolerant = skips(step) or until is not None  # V: with `until`, "failed items are results"
        # F: "`until:` ends it as soon as the condition holds for the results so far; the other items are cancelled".
        while not (until and holds(until, results=seen(done))) and waiting:
            index = next(each for each in waiting if {*needed(step, each)} <= done.keys())
            waiting.remove(index)
            if any(counts_as_failed(step, done[each]) for each in needed(step, index)):
                done[index] = Result(SKIPPED)  # R2: "A skipped item is not a failed one."
                continue
            done[index] = self._tried(step, f"{key}.{index}")
            if done[index].verdict == FAILED and not is_tolerant:
                return done[index]  # V: "Without `skip`, a failed item […] ends the run […] (3)"
        met = until is not None and holds(until, results=seen(done))
        if merges(step):  # after the step, in item order
            done = {index: self._merge(done[index], f"{key}.{index}") for index in sorted(done)}
        failed = [result for result in in_order(done) if result.verdict == FAILED]
        if failed and not is_tolerant:
            return failed[0]
        done |= {index: Result(SKIPPED) for index in waiting}
        fields = {"results": seen(done), "failed": len(failed), "met": met}
        first = failed[0].outcome if failed and until is None else ""
        return Result(verdict_of_items(step, [each.verdict for each in in_order(done)], met), fields, first)


def verdict_of_items(step: Record, verdicts: Sequence[str], met: bool) -> str:
    if "until" in step["for_each"]:  # V: "With `until`, only whether it was met counts"
        return GOOD if met else BAD
    allowed = step["for_each"].get("allow", ())
    if allowed and ("bad" in allowed or BAD not in verdicts):  # V: "if none is good (no items are good)"
        return GOOD if GOOD in verdicts or not verdicts else BAD
    return BAD if BAD in verdicts else GOOD  # V: "After all items the fan-out is bad if one is bad"


def needed(step: Record, index: int) -> Iterator[int]:
    """The indices of the items that the one at ``index`` needs."""
    items = step["for_each"]["items"]
    has_needs = "needs" in step["for_each"]
    return (items.index(each) for each in items if has_needs and each["id"] in items[index]["needs"])


def counts_as_failed(step: Record, result: Result) -> bool:
    """V: a bad item "counts as failed for `needs` unless the step says `allow: [bad]`"."""
    return result.verdict in (FAILED, SKIPPED) or (result.verdict == BAD and "bad" not in step.get("allow", ()))


def is_saved(step: Record, route: Record | None) -> bool:
    """Whether the flow survives a bad result of ``step``, after which ``route`` is taken."""
    if "bad" in step.get("allow", ()):  # V3: it "keeps its output and follows `next`"; also a fan-out as a whole
        return True
    return route is not None and reads_result(step)  # V2: "the author has decided"


def reads_result(step: Record) -> bool:
    """V2: "a `when` of that `next` reads the result", one of any entry of it."""
    conditions = " ".join(route.get("when", "") for route in step["next"])
    return any(each not in NOT_RESULTS for each in re.findall(rf"\bsteps\.{step['id']}\.(\w+)", conditions))


def spread(step: Record) -> Record:
    """F: "`ask: [security, style, logic]` is one item per role"."""
    given = step.get("for_each", {})
    items = step["ask"] if isinstance(step.get("ask"), list) else given
    return {**step, "for_each": {"items": items, **(given if isinstance(given, dict) else {})}} if items else step


def skips(step: Record) -> bool:
    return "failed" in step.get("for_each", step).get("allow", ())


def merges(step: Record) -> bool:
    return "isolate" in step and step["isolate"] != {"merge": "none"}


def holds(condition: str, **values: Any) -> bool:
    """Whether a condition holds, in a run of one cycle."""
    return bool(compiled(condition)(cycles=1, **values))


def value_of(template: str, **values: Any) -> Any:
    """F: "A value that is one whole `{{ … }}` keeps its type"."""
    whole = template.removeprefix("{{")
    return compiled(whole.removesuffix("}}"))(**values) if whole != template else template


@cache
def compiled(condition: str) -> Callable[..., Any]:
    return _JINJA.compile_expression(condition)


def in_order(done: Mapping[int, Result]) -> Iterator[Result]:
    return (done[index] for index in sorted(done))


def seen(done: Mapping[int, Result]) -> list[dict[str, Any]]:
    """F: "a fan-out has `results`, in item order"."""
    return [result.seen for result in in_order(done)]


def step_of(key: str) -> str:
    """``s/x`` of ``s.1.0/x.2``."""
    return re.sub(r"(\.\d+)+(?=/|$)", "", key)


def nth(given: Sequence[Any], number: int) -> Any:
    return given[min(number, len(given)) - 1]
