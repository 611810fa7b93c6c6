"""Random flows with random bad results: a run that ends in success has left no bad result to itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.errors import ExitCode
from codex_multi_role.reading.json_types import Json
from tests.support.scripted import Script
from tests.verdicts.table import TOLD, Record

BAD, GOOD = {"status": "failed", "reason": ""}, {"status": "ok", "reason": ""}
DECIDED = ("routed", "continued", "skipped")
"""The answers of a step with which its bad result does not end the flow."""


def says(answer: str, name: str, following: str) -> Record:
    answers: dict[str, Record] = {
        "nothing": {},
        "routed": {"next": [{"when": f"steps.{name}.verdict == 'failed'", "to": following}]},
        "through": {"next": [{"when": f"steps.{name}.verdict == 'ok'", "to": following}]},
        "unread": {"next": [{"when": f"steps.{name}.visits == 1", "to": following}]},
        "continued": {"on_bad": "continue"},
        "retried": {"retry": {"attempts": 2, "backoff_seconds": 0}},
        "skipped": {"on_error": "skip"},
    }
    return answers[answer]


Steps = list[tuple[str, list[bool], bool]]
"""Of each step: what it says about a bad result, whether its first tries are good, and whether a called flow has it."""
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*DECIDED, "nothing", "through", "unread", "retried"]),
        st.lists(st.booleans(), min_size=2, max_size=2),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


def flows_of(steps: Steps) -> tuple[list[Record], dict[str, list[Json]]]:
    """The flow and those that it calls, with the results of each check."""
    flow: Record = {"steps": [], "result": {"title": "All", "text": ""}}
    called, results = list[Record](), dict[str, list[Json]]()
    for number, (answer, good, is_called) in enumerate(steps):
        name = f"s{number}"
        check = {"id": name, "check": "command", "with": TOLD, **says(answer, name, f"s{number + 1}")}
        flow["result"]["text"] += f"{{{{ steps.{name}.{'steps' if is_called else 'verdict'} }}}}"
        results[f"{name}/{name}" if is_called else name] = [GOOD if each else BAD for each in good]
        if is_called:
            last = {"id": f"s{number + 1}", "check": "answer", "with": {"text": "done"}}
            called.append({"name": f"f{number}", "internal": True, "steps": [check, last]})
            flow["steps"].append({"id": name, "call": f"f{number}"})
        else:
            flow["steps"].append(check)
    flow["steps"].append({"id": f"s{len(steps)}", "check": "answer", "with": {"text": "done"}})
    return [flow, *called], results


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_success_leaves_no_bad_result_to_itself(steps: Steps) -> None:
    (flow, *called), results = flows_of(steps)
    with tempfile.TemporaryDirectory() as folder:
        walked = Script(Path(folder), {"one": [{"summary": "fine"}]}, results).walk(flow, *called)
    left = [
        number
        for number, (answer, good, _) in enumerate(steps)
        if not (good[0] or (answer == "retried" and good[1]) or answer in DECIDED)
    ]
    expected = ExitCode.GOAL_NOT_REACHED if left else ExitCode.GOAL_REACHED
    assert walked.ending.exit_code == expected, walked.ending
    if left:
        assert walked.ending.reason.startswith(f"step s{left[0]}: ")
