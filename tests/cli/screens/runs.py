"""The events of the runs whose screens are kept, as an engine publishes them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

from codex_multi_role.run_folder import RunEvent
from codex_multi_role.run_folder import events as e
from tests.support.recorded_runs import ended, in_order, started, turn

Events = list[RunEvent]
TITLES = (
    *("slug_words: split a text into words", "is_slug", "unslug", "transliterate accents", "max_length", "stop words"),
    *("unique slugs in a set", "command line", "read from standard input", "locale tables", "benchmarks", "release"),
)
QUESTION = "Carry out this plan, with a greeting in greeting.txt and one test for it?"
OLD_FAILURES = ("tests/test_roman.py::test_zero", "tests/test_roman.py::test_negative_numbers_are_refused")
NEW_FAILURE = "tests/test_roman.py::TestSubtraction::test_nine_hundred_and_ninety_nine"


def session(goal: str, steps: str, roles: str = "planner implementer", **more: Any) -> Events:
    """The start of a session and of its processes; ``more``: fields of `RunStarted`."""
    fields = {"roles": roles.split(), "steps": steps.split(), "flow": "build", "cycles": 0, "playbook": None, **more}
    processes = [e.RoleStarted(name, 1, "t", 0.3, False) for name in roles.split()]
    return [replace(started(), goal=goal, **fields), e.ProcessesStarting(roles.split()), *processes]


def works(role: str, unit: str, said: str = "", number: int = 1, does: str = "command: pytest -q") -> Events:
    """A turn of the unit: it ``said`` something at its end, or still works."""
    end = e.TurnEnded(role, number, "completed", "completed", "", 1200, 34, 1.5, said, cost=0.42)
    beginning = e.TurnStarted(role, number, 1, 1, None, unit=unit)
    return [beginning, e.RoleActivity(role, number, does), *([end] if said else [])]


def step(name: str, visit: int = 1, *inside: RunEvent, title: str = "", met: bool = False) -> Events:
    """A whole visit of a step."""
    return [e.StepStarted(name, visit, visit, title=title), *inside, e.StepEnded(name, visit, "COMPLETED", met=met)]


def items(unit: str, names: tuple[str, ...], state: str, titles: tuple[str, ...] = ()) -> Events:
    """The items of a fan-out come to this state."""
    told = zip(names, titles or names, strict=True)
    return [e.StateChanged(f"{unit}.{at}", name, state, "", title) for at, (name, title) in enumerate(told)]


def tested(number: int, role: str, passed: int, *failures: str, **more: int) -> Events:
    status, words = "failed" if failures else "passed", "AssertionError: assert 'a-b' == 'a b', which splits at hyphens"
    beside = {"verdict": status, "messages": dict.fromkeys(failures[:1], words), **more}
    over = e.TestsEnded(number, status, passed, len(failures), 0, 0, 18.0, list(failures), **beside)  # type: ignore[arg-type]
    return [e.TestsStarted(number, role, 1), over]


def before(*failures: str, **more: Any) -> Events:
    measured = e.BaselineMeasured("failed" if failures else "passed", 31, len(failures), 0, 0, 18.0, **more)
    return [e.BaselineStarted(last_seconds=18.0), measured]


def fan_out() -> Events:
    """Of twelve tasks, four have ended, one of them with a new failure, and one failed; four are running."""
    names = tuple(f"T{number}" for number in range(1, 13))
    turns = [works(f"coder.{at}", f"work.1.{at - 1}", "wrote it" if at < 6 else "") for at in range(1, 9)]
    ends = [("COMPLETED", ""), ("COMPLETED", ""), ("COMPLETED", "1 new failure"), ("FAILED", "summary: is missing")]
    reason = "the role coder.4 gave no valid answer in 3 attempts: "
    return [
        *session("Write the package slugs: words, cases and a command line", "plan work review document", "planner"),
        *before(), *step("plan", 1, *works("planner", "plan.1", "twelve tasks")), e.StepStarted("work", 1, 2),
        *items("work.1", names, "PENDING", TITLES), *items("work.1", names[:8], "IN_PROGRESS"), *chain(*turns),
        *tested(1, "coder.1", 31), *tested(2, "coder.2", 33),
        *tested(3, "coder.3", 30, "tests/test_slugs.py::TestUnslug::test_two_words", new_failures=1),
        e.TestsStarted(4, "coder.5", 1),
        *(e.StateChanged(f"work.1.{at}", names[at], state, reason * (state == "FAILED") + why)
          for at, (state, why) in enumerate(ends)),
        e.RoleActivity("coder.6", 1, "command: rg --files-with-matches 'stop_words' src tests docs"),
    ]  # fmt: skip


def crowd() -> Events:
    """The same, while a person is asked, on a small terminal."""
    busy = [e.StateChanged(f"work.1.{at}", f"T{at + 1}", "IN_PROGRESS", "") for at in (8, 9)]
    return [*fan_out(), *busy, *[e.Warning("the disk is nearly full")] * 3, e.ReviewAsked("work.1.9/ok.1", QUESTION),
            e.ReviewAsked("work.1.8/ok.1", QUESTION)]  # fmt: skip


def called() -> Events:
    """A step calls a flow, which calls another one."""
    return [
        *session("Build and measure it", "plan build publish", "planner coder tester"),
        *step("plan", 1, *works("planner", "plan.1", "two parts"), title="Plan the parts"),
        e.StepStarted("build", 1, 2, title="Build each part"),
        *step("build.1/write", 1, *works("coder", "build.1/write.1", "wrote parser.py")),
        e.StepStarted("build.1/measure", 1, 2),
        *step("build.1/measure.1/warm_up", 1, *works("tester", "build.1/measure.1/warm_up.1", "all caches are warm")),
        e.StepStarted("build.1/measure.1/time", 1, 2, title="Time ten runs"),
        *works("tester", "build.1/measure.1/time.1", number=2, does="command: python -m timeit -n 10 'import parser'"),
    ]


def parallel() -> Events:
    """Three reviewers at once, in their second round; one has ended."""
    names = ("security", "style", "logic")
    return [
        *session("Greet the user by name", "write panel", "implementer security style logic", flow="reviewed"),
        *step("write", 1, *works("implementer", "write.1", "wrote greet.py")),
        *step("panel", 1, *items("panel.1", names, "IN_PROGRESS"), *items("panel.1", names, "COMPLETED")),
        *step("write", 2, *works("implementer", "write.2", "escapes the name", 2)),
        e.StepStarted("panel", 2, 4), *items("panel.2", names, "IN_PROGRESS"),
        *works("security", "panel.2.0", "accept: the name is escaped now", 2),
        *items("panel.2", names[:1], "COMPLETED"),
        *works("style", "panel.2.1", number=2, does="message"),
        *works("logic", "panel.2.2", number=2, does="tool: read_file greet.py"),
    ]  # fmt: skip


def until() -> Events:
    """The first attempt that works ends the others."""
    names = ("shortest", "plain", "careful")
    turns = [works(f"developer.{at + 1}", f"race.1.{at}", "wrote even.py") for at in range(3)]
    why = "attempt ended with two_failed: step two: check command: failed: exit code 1"
    told = (("COMPLETED", why), ("COMPLETED", ""), ("SKIPPED", "not needed: the results so far suffice"))
    ends = [e.StateChanged(f"race.1.{2 - at}", names[2 - at], *each) for at, each in enumerate(told)]
    return [
        *session("Tell even numbers from odd ones", "race merge", "developer", flow="first"),
        *step("race", 1, *items("race.1", names, "IN_PROGRESS"), *chain(*turns), *ends, met=True),
        *step("merge"),
        *tested(1, "", 4),
        replace(ended(), outcome="success", reason="first finished: success"),
    ]


def waiting() -> Events:
    """Before the first turn, while the tests run."""
    return [*session("Welcome new users", "plan approve work", flow="planned"), *before()[:1]]


def review() -> Events:
    plan = step("plan", 1, *works("planner", "plan.1", "A greeting in greeting.txt, and one test for it"))
    return [*waiting(), before()[1], *plan, e.StepStarted("approve", 1, 2), e.ReviewAsked("approve.1", QUESTION)]


def parked() -> Events:
    """It waits for the answer, without a process."""
    why = "approve.1 waits for a person"
    return [*review(), replace(ended(), status="parked", outcome="waiting_for_review", reason=why, exit_code=4)]


def cycles(**more: Any) -> Events:
    roles = "planner implementer integrator"
    return session("Convert roman numerals", "team", roles, cycles=3, flow="cycles", **more)


def resumed() -> Events:
    """A session was killed in a turn; the next one works."""
    visit = e.StepStarted("team", 1, 1)
    killed = [*cycles(playbook="roman-numerals"), visit, *turn("planner", 1, 1), *turn("implementer", 1, 1)[:2]]
    again = cycles(resumed=True, worked_seconds=9.0, playbook="roman-numerals")
    return [*killed, *again, visit, *turn("implementer", 2, 1)[:2]]


def forked() -> Events:
    """Only the implementer works again: what the planner did is inherited."""
    words = "forked from 20260131_101500_0a1b2c3d before team:2, with the workspace as it was then"
    return [e.RunForked(words), *cycles(), *turn("implementer", 4, 2)[:2]]


def tests_failing() -> Events:
    """Two tests failed before the first change; now one more fails, and one is fixed."""
    return [
        *cycles(), *before(*OLD_FAILURES, left_by={"20260130_090000_aaaaaaaa": 1}), e.StepStarted("team", 1, 1),
        *turn("planner", 1, 1), *turn("implementer", 1, 1),
        e.FilesApplied("implementer", 1, 2, 1, ["roman.py", "tests/test_roman.py"]),
        *tested(1, "implementer", 30, NEW_FAILURE, OLD_FAILURES[0], new_failures=1, still_failing=1, fixed=1),
        e.DoneIgnored("implementer", 1, "1 new failure"),
    ]  # fmt: skip


def paused() -> Events:
    """Parked by a person."""
    over = replace(ended(), status="parked", outcome="paused", reason="the run was paused", exit_code=4)
    return [*tests_failing(), over]


def failed() -> Events:
    """A role gave no valid answer in any attempt."""
    reason = "the role implementer gave no valid answer in 3 attempts: summary: is missing"
    tries = [turn("implementer", number, 2, status="invalid_reply") for number in (2, 3)]
    warning = e.Warning("the disk is nearly full: 1.2 GB of 512 GB are free")
    over = replace(ended(), status="failed", outcome="role_failed", reason=reason, exit_code=3)
    return [*tests_failing(), e.StepStarted("team", 2, 2), *turn("planner", 2, 2), warning, *chain(*tries), over]


def wide() -> Events:
    """A long goal and an answer in wide characters, with markup and what would control the terminal."""
    goal = "ローマ数字を変換するプログラムを書いてください。\x1b[31m負の数とゼロは拒否し、\u202eテストも書くこと。" * 2
    said = (
        "変換器を\x1b]0;owned\x07書きました: [red]roman.py[/red] (\u4e2d\u6587\u8aac\u660e\u4ed8\u304d) \x9b2J🎉 ok" * 3
    )
    does = "command: sed -n '1,200p' 説明/ローマ数字の変換について.md\x08\x08"
    team = [e.StepStarted("team", 1, 1), *works("planner", "", said), *works("implementer", "", does=does)]
    return [*session(goal, "team", cycles=3, flow="cycles"), *team]


RUNS = {
    each.__name__: in_order(*each())
    for each in (
        *(fan_out, crowd, called, parallel, until, waiting, review, parked, resumed, forked, tests_failing, paused),
        *(failed, wide),
    )
}
