"""How a flow with a bad result ends: the expected ends, written by hand from the three rules of the flow language.

1. ``retry`` tries again. 2. An entry of the step's own ``next`` is taken, and a ``when`` of it reads the result.
3. Otherwise the step has failed: ``allow: [bad, failed]`` continues, else the flow ends with exit 1. ``allow: [bad]``
of the step continues as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]

SKIPPED = {"allow": ["bad", "failed"]}
PLACES = ("last", "middle", "fan_out", "called", "before_done")
"""Where the step stands: nothing follows it; a role is asked after it; it is one item of two, the other is good; it is
the last step of a called flow, whose caller has no route; a role says DONE after it."""

ENDS_OF_CHECKS = """
           last     middle   fan_out  called   before_done
nothing    x_failed x_failed x_failed s_failed x_failed
route      handled  handled  handled  success  handled
through    x_failed x_failed x_failed s_failed x_failed
unread     x_failed x_failed x_failed s_failed x_failed
continue   success  success  success  success  done
retry      success  success  success  success  done
skip       success  success  success  success  done
"""
ENDS_OF_CALLS = ENDS_OF_CHECKS
# A person is not asked the same again, and a rejection is never only measured.
ENDS_OF_REVIEWS = """
           last     middle   fan_out  called   before_done
nothing    x_failed x_failed x_failed s_failed x_failed
route      handled  handled  handled  success  handled
through    x_failed x_failed x_failed s_failed x_failed
unread     x_failed x_failed x_failed s_failed x_failed
continue   refused  refused  refused  refused  refused
retry      refused  refused  refused  refused  refused
skip       success  success  success  success  done
"""
# Nobody answers, so no item is good.
ENDS_AFTER_TIME = ENDS_OF_REVIEWS.replace(
    "skip       success  success  success", "skip       success  success  x_failed"
)
EXIT_CODES = {"x_failed": 1, "s_failed": 1, "handled": 0, "success": 0, "done": 0, "refused": 2}


@dataclass(frozen=True)
class BadResult:
    """A kind of step and what it leaves: ``bad`` at first, ``good`` for the next try.

    ``step``: its own keys. ``when``: a condition that reads the result and holds if it is bad.
    ``reason``: of a run that it ends.
    """

    name: str
    step: Record
    ends: str
    bad: Record
    good: Record
    when: str = "steps.x.verdict != '{good}'"
    reason: str = ""


def check(name: str, status: str, good: str, options: Record | None = None, **more: Any) -> BadResult:
    """A check with a bad ``status``; ``more``: further fields of its result."""
    fields = {"reason": "", **more}
    step, said = {"check": name, "with": options or {}}, f"{name}: {status}"
    bad, reason = {"status": status, **fields}, said if name == "tests" else f"check {said}"
    return BadResult(said, step, ENDS_OF_CHECKS, bad, {"status": good, **fields}, reason=reason)


TOLD = {"argv": ["true"]}
TESTS = {"target": "a.py", "tests": "tests"}
RESULTS: Sequence[BadResult] = (
    check("command", "failed", "ok", TOLD),
    check("command", "timed out", "ok", TOLD),
    check("tests", "failed", "passed", number=1),
    check("tests", "timed out", "no tests", number=1),
    check("coverage", "crashed", "passed", TESTS),
    check("coverage", "syntax error", "passed", TESTS),
    check("schema", "invalid", "valid", {"file": "a.json", "schema": {}}, problems=["a: is missing"]),
    check("choose", "none", "chosen", {"candidates": [], "by": [{"key": "a", "prefer": "highest"}]}),
    check("merge", "conflicts", "merged", {"copies": ["x.1.1"]}),
    BadResult(
        "flaky: a test that always fails",
        {"check": "flaky"},
        ENDS_OF_CHECKS,
        {"status": "ok", "flaky": {}, "failed": ["test_a"]},
        {"status": "ok", "flaky": {}, "failed": []},
        "steps.x.failed",
        "check flaky: failed every time: test_a",
    ),
    BadResult(
        "review: rejected", {"review": "Continue?"}, ENDS_OF_REVIEWS, {}, {}, "not steps.x.approved", "rejected by "
    ),
    BadResult(
        "review: out of time",
        {"review": {"question": "Continue?", "after": {"seconds": 0.000001, "answer": "reject"}}},
        ENDS_AFTER_TIME,
        {},
        {},
        "not steps.x.approved",
        "rejected by time limit",
    ),
    BadResult(
        "call: ended with exit 1", {"call": "broken"}, ENDS_OF_CALLS, {"status": "failed"}, {"status": "ok"},
        "steps.x.exit_code == 1", "broken ended with ",
    ),
)  # fmt: skip
BROKEN: Record = {
    "name": "broken",
    "internal": True,
    "steps": [
        {"id": "look", "check": "command", "with": TOLD, "next": [
            {"when": "steps.look.verdict == 'failed'", "end": "broken", "exit": 1}, {"end": "fine"},
        ]},
    ],
}  # fmt: skip
"""The flow that a call gets its bad result from."""


OF_ALL = ("command: failed", "tests: failed", "call:", "| nothing |", "| route | last", "| continue | fan_out")
"""In the names of the cells that are played with checks."""


@dataclass(frozen=True)
class Cell:
    """``response``: what the step says about a bad result."""

    result: BadResult
    response: str
    place: str
    end: str

    @property
    def name(self) -> str:
        return f"{self.result.name} | {self.response} | {self.place}"

    def flows(self) -> tuple[Record, ...]:
        """The flow, and those that it calls."""
        flow = self._called() if self.place == "called" else {"steps": [self._step(), *self._following()]}
        more: list[Record] = [BROKEN] if "call" in self.result.step else []
        if self.place == "called":
            reads = {"title": "Result", "text": "{{ steps.s.steps.x }}"}
            caller: Record = {"steps": [{"id": "s", "call": "inner"}]}
            return {**caller, **({"result": reads} if self.response == "continue" else {})}, flow, *more
        if self.response == "continue":
            shown = "results" if self.place == "fan_out" else "verdict"
            flow |= {"result": {"title": "Result", "text": f"{{{{ steps.x.{shown} }}}}"}}
        return flow, *more

    def _called(self) -> Record:
        return {"name": "inner", "internal": True, "steps": [self._step(), *self._following()]}

    def _following(self) -> list[Record]:
        after = {"middle": [{"ask": "one"}], "before_done": [{"ask": "boss"}]}.get(self.place, [])
        deploy = {"id": "deploy", "ask": "one", "next": [{"end": "success"}]}
        return [*after, deploy] if self.response == "through" else after

    def _step(self) -> Record:
        every: Record = {}
        if self.place == "fan_out":
            every = {"for_each": {"items": ["a", "b"], **(SKIPPED if self.response == "skip" else {})}}
        return {"id": "x", **self.result.step, **every, **self._says()}

    def _says(self) -> Record:
        good = self.result.good.get("status", "")
        bad = "steps.x.results | selectattr('bad') | list" if self.place == "fan_out" else self.result.when
        bad = bad.replace("{good}", good)
        answers: Mapping[str, Record] = {
            "nothing": {},
            "route": {"next": [{"when": bad, "end": "handled"}]},
            "through": {"next": [{"when": f"not ({bad})", "to": "deploy"}]},
            "unread": {"next": [{"when": "cycle == 1", "end": "unread"}]},
            "continue": {"allow": ["bad"]},
            "retry": {"retry": {"attempts": 2, "backoff_seconds": 0}},
            "skip": {} if self.place == "fan_out" else SKIPPED,
        }
        return answers[self.response]


def cells() -> Iterator[Cell]:
    """Every cell of the tables for each kind of step; of the other checks, which only name other results bad, some."""
    for result in RESULTS:
        for line in result.ends.strip().splitlines()[1:]:
            response, *ends = line.split()
            for place, end in zip(PLACES, ends, strict=True):
                cell = Cell(result, response, place, end)
                if result.ends != ENDS_OF_CHECKS or any(words in cell.name for words in OF_ALL):
                    yield cell
