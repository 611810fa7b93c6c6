"""A failure in a called flow is raised there as if the flow ran alone, and caught by the call that tolerates it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from codex_multi_role.reading.json_types import Json
from tests.support.scripted import BREAKS, FAILS, WAITS, Play, Script, Walked

TOLERATED: Json = {"allow": ["failed"]}
RETRY: Json = {"retry": {"attempts": 3, "backoff_seconds": 0}}
TWICE: Json = {"retry": {"attempts": 2, "backoff_seconds": 0}}
SKIP: Json = {"allow": ["bad", "failed"]}
ITEMS: Json = {"for_each": {"items": ["a", "b"], "concurrency": 2}}
SKIPPED_ITEMS: Json = {"for_each": {**ITEMS["for_each"], **SKIP}}


def script(folder: Path, **more: object) -> Script:
    plays = {"one": [FAILS], "two": [{"summary": "fine"}]}
    return replace(Script(folder, plays, {"c/i/look": [{"status": "failed", "exit_code": 1}]}), **more)  # type: ignore[arg-type]


def walk(of: Script, call: Json, *inner: Json, **more: Json) -> Walked:
    """The walk of a flow that calls ``inner`` two levels deep, and then asks ``two``."""
    called = {"name": "inner", "vars": {"n": 0}, "steps": [*inner]}
    between = {"name": "between", "steps": [{"id": "i", "call": "inner", **more}]}
    return of.walk({"steps": [{"id": "c", "call": "between", **call}, {"ask": "two"}]}, called, between)


def result_of(walked: Walked) -> Json:
    return walked.state.steps["c"].output


def test_units_of_a_second_try_have_keys_of_their_own(tmp_path: Path) -> None:
    of = script(tmp_path)
    walk(of, RETRY, {"id": "x", "ask": "one", **ITEMS}, **TWICE)
    units = [each.split()[0] for each in of.journal.done]
    tries = ["c.1/i.1", "c.1/i.1/try-2", "c.1/try-2/i.1", "c.1/try-2/i.1/try-2", "c.1/try-3/i.1", "c.1/try-3/i.1/try-2"]
    assert sorted(units) == sorted(f"{each}/x.1.{item}" for each in tries for item in (0, 1))


@pytest.mark.parametrize(
    "inner",
    [
        [{"id": "x", "ask": "two", "set": {"n": "{{ steps.x.summary | sum }}"}}],
        [{"id": "x", "ask": "two"}, {"ask": "two", "prompt": "{{ steps.x.summary | sum }}"}],
        [
            {"id": "x", "ask": "two"},
            {"id": "y", "ask": "two", "for_each": {"items": "{{ steps.x.summary }}", "max_items": 2}},
        ],
        [{"id": "x", "ask": "two", "next": [{"when": "steps.x.summary | sum", "end": "odd"}]}],
    ],
)
def test_wrong_values_of_a_called_flow_are_failures_of_it(tmp_path: Path, inner: list[Json]) -> None:
    walked = walk(script(tmp_path), SKIP, *inner)
    assert walked.ending.exit_code == 0, walked.ending
    output = result_of(walked)
    assert (output["exit_code"], walked.state.steps["c"].status) == (3, "failed")
    assert walked.state.latest_handoffs["two"] == {"summary": "fine"}


@pytest.mark.parametrize(
    "reads",
    [{"next": [{"when": "steps.p.results[0].a", "end": "x"}]}, {"set": {"n": "{{ steps.p.results[0].a }}"}}, {}],
)
def test_wrong_value_after_a_fan_out_without_items_is_no_wrong_usage(tmp_path: Path, reads: Json) -> None:
    """Nobody was asked, and the caller has no result yet, but the called flow has."""
    prompt = "Do {{ steps.p.results[0].a }}."
    ending = walk(
        script(tmp_path), {}, {"id": "p", "ask": "two", "for_each": [], **reads}, {"ask": "two", "prompt": prompt}
    ).ending
    assert (ending.outcome, ending.exit_code, ending.suggestion) == ("wrong_value", 3, "fork RUN --from c:1")


def test_caller_sees_what_steps_before_the_failure_left(tmp_path: Path) -> None:
    inner: list[Json] = [{"id": "x", "ask": "two"}, {"id": "y", "ask": "one"}]
    walked = Script(tmp_path, {"one": [FAILS], "two": [{"summary": "fine"}]}).walk(
        {"steps": [{"id": "c", "call": "inner", **SKIP}]}, {"name": "inner", "vars": {"n": 1}, "steps": inner}
    )
    assert result_of(walked) == {
        "outcome": "failed", "exit_code": 3, "vars": {"n": 1}, "steps": {"x": {"summary": "fine"}, "y": {}},
    }  # fmt: skip
    assert (walked.state.latest_handoffs, len(walked.state.history)) == ({"two": {"summary": "fine"}}, 1)


def test_skipped_items_are_not_failed_ones(tmp_path: Path) -> None:
    step: Json = {
        "id": "x", "ask": "one",
        "for_each": {
            "items": [{"id": "a"}, {"id": "b", "n": ["a"]}, {"id": "c"}],
            "needs": "{{ item.n | default([]) }}", "allow": ["failed"],
        },
    }  # fmt: skip
    plays = [lambda asked: {"ok": 1} if asked.payload["item"]["id"] == "c" else FAILS]
    walked = Script(tmp_path, {"one": plays}).walk({"steps": [{**step, "prompt": "It."}]})
    output = walked.state.steps["x"].output
    assert [each["status"] for each in output["results"]] == ["failed", "skipped", "done"]
    assert (output["failed"], walked.ending.exit_code) == (1, 0)


def replays(of: Script, flow: Json, *called: Json) -> None:
    """Assert that a kill after every fourth record changes nothing of the end, and that nothing is done twice.

    Between a failure and the record of what it cancels, other items may still be worked on. Once all is recorded,
    nothing is done.
    """
    team = of.team(flow, *called)
    whole = of.walk_loaded("own", *team, None)
    past = whole.rehearse()
    assert (past.visits, past.stopped_in) == ({"c": 1, "end": whole.state.steps["end"].visits}, "")
    last = len(of.journal.records)
    for number in (*range(last % 4, last, 4), last):
        again = replace(of, journal=of.journal.until(number), asks=[])
        walked = again.walk_loaded("own", *team, None)
        assert (walked.ending, walked.state.steps["end"]) == (whole.ending, whole.state.steps["end"])
        done = Counter(of.journal.done)
        for work, times in Counter(again.journal.done).items():
            assert times <= max(done[work], 2 if work.startswith(" ") else 1)  # a role of a team has no unit
        assert walked.state.steps["c"].error == whole.state.steps["c"].error
    assert (walked.state, again.journal.done) == (whole.state, of.journal.until(number).done)


IDS = [{"id": "a", "n": []}, {"id": "bad", "n": ["a"]}, {"id": "c", "n": ["a"]}, {"id": "d", "n": ["bad"]}]


def fan_out(**more: object) -> Json:
    given = {"items": IDS, "concurrency": 2, **more}
    return {"id": "x", "ask": "some", "prompt": "{{ item.id }}", "for_each": given}


FAILING: dict[str, list[Json]] = {
    "stop": [fan_out()],
    "cancel": [fan_out(on_failure="cancel")],
    "needs": [fan_out(needs="{{ item.n }}")],
    "every role": [{"id": "x", "ask": "*"}],
    "check": [{"id": "x", "check": "command", "with": {"argv": ["true"]}, "for_each": IDS}],
    "values": [{"id": "x", "ask": "two", "prompt": "{{ item.m }}", "for_each": [{"m": "fine"}, {"k": 1}]}],
    "limit": [{"id": "y", "check": "command", "with": {"argv": ["true"]}, "limits": {"seconds": 0.02}}],
    "limited items": [
        {"id": "y", "check": "command", "with": {"argv": ["true"]}, "limits": {"seconds": 0.02}, **ITEMS}
    ],
    "limited roles": [{"id": "y", "ask": "*", "limits": {"seconds": 0.02}}],
    "list": [
        {"id": "x", "ask": "two"},
        {"id": "y", "ask": "two", "for_each": {"items": "{{ steps.x.summary }}", "max_items": 2}},
    ],
}


@pytest.mark.parametrize("failing", FAILING)
@pytest.mark.parametrize("call", [SKIP, TWICE | SKIP, SKIPPED_ITEMS], ids=["skip", "retry", "items"])
def test_replay_of_caught_failures_does_nothing_twice(tmp_path: Path, call: Json, failing: str) -> None:
    plays: dict[str, list[Play]] = {
        "two": [{"summary": "fine"}],
        "some": [lambda asked: FAILS if asked.role.prompt_text == "bad" or failing == "every role" else {}],
        "slow": [WAITS if failing == "limited roles" else {}],
        "three": [{"summary": "more"}],
    }
    inner = {"name": "inner", "steps": [{"id": "p", "ask": "two", **ITEMS}, *FAILING[failing], {"ask": "two"}]}
    between = {"name": "between", "steps": [{"id": "i", "call": "inner"}]}
    flow = {"steps": [{"id": "c", "call": "between", **call}, {"id": "end", "ask": "two"}]}
    replays(Script(tmp_path, plays, {"c/i/x": [{"status": "passed"}, BREAKS], "c/i/y": [WAITS]}), flow, inner, between)


def test_failure_that_an_earlier_version_tolerated_is_one(tmp_path: Path) -> None:
    """It recorded it as the outcome of the step, for which the journal here is made with ``allow: [failed]``."""
    steps: list[Json] = [{"id": "x", "ask": "one"}, {"id": "y", "check": "command", "with": {"argv": ["true"]}}]
    of = Script(tmp_path, {"one": [FAILS], "two": [{}]}, {"c/i/y": [BREAKS]})
    walk(of, SKIP, *({**step, **TOLERATED} for step in steps))
    for first in (0, 1):
        again = replace(of, journal=of.journal.until(1 + first))
        walked = walk(
            again, SKIP, *({**step, **(TOLERATED if index < first else {})} for index, step in enumerate(steps))
        )
        assert (result_of(walked)["outcome"], result_of(walked)["exit_code"]) == ("failed", 3)


def test_past_without_decisions_is_walked_to_its_end(tmp_path: Path) -> None:
    """An ``until`` that was not met and a limit that was kept recorded nothing."""
    check: Json = {"check": "command", "with": {"argv": ["true"]}}
    never: Json = {
        "id": "u",
        **check,
        "for_each": {**ITEMS["for_each"], "until": "results | selectattr('bad') | list"},
        "next": [{"when": "not steps.u.met", "to": "end"}],
    }
    of = Script(tmp_path, {"two": [{}]}, {"l": [{}], "u": [{}]})
    walked = of.walk({"steps": [{"id": "l", **check, "limits": {"seconds": 60}}, never, {"id": "end", "ask": "two"}]})
    assert (walked.ending.exit_code, walked.rehearse().visits) == (0, {"l": 1, "u": 1, "end": 1})
