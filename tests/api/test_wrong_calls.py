"""The mistakes of a developer: each is refused in words that name the argument, before anything starts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from codex_multi_role import (
    CodexMultiRoleError,
    Flow,
    Role,
    Route,
    RunOptions,
    Step,
    Team,
    cancel_task,
    fork,
    load_run,
    resume,
    run,
    start,
    start_async,
)
from tests.support.recorded_runs import make_run

WRITER = Role(name="writer", prompt_text="Write it.\nAll of it.")
TEAM = Team(roles=[WRITER])


async def enter(**wrong: Any) -> None:
    async with start_async("reach it", **wrong):
        pass


def past(**wrong: Any) -> object:
    return load_run(runs_dir=wrong.pop("runs_dir")).resume(**wrong)


def forked(**wrong: Any) -> object:
    return fork("latest", **wrong)


pytestmark = pytest.mark.usefixtures("scripted_codex")

Calls = dict[str, tuple[Callable[..., object], dict[str, Any]]]
IN_PYTHON: Calls = {
    'Role(): unknown key "prompt_txt"; did you mean "prompt_text"?': (Role, {"name": "a", "prompt_txt": "Do it."}),
    'Role(): depends_on: must be a list, not "planner"': (Role, {"name": "a", "depends_on": "planner"}),
    'Role(): behaviors: unknown key "apply_file"; did you mean "apply_files"?': (
        Role,
        {"name": "a", "behaviors": MappingProxyType({"apply_file": True})},
    ),
    'Step(): unknown key "wiht"; did you mean "with_"?': (Step, {"ask": "a", "wiht": {}}),
    "Step(): with_: must be a mapping, not 3": (Step, {"ask": "a", "with_": 3}),
    'Step(): unknown key "as_"; did you mean "ask"?': (Step, {"ask": "a", "as_": "file"}),
    'Step(): next[0]: unknown key "too"; did you mean "to"?': (Step, {"ask": "a", "next": ({"too": "b"},)}),
    "Step(): give exactly one of ask, check, review, call": (Step, {"id": "a"}),
    "Route(): give exactly one of to, end": (Route, {"to": "a", "end": "b"}),
    "Flow(): steps: must not be empty": (Flow, {"steps": []}),
    'Team(): missing key "roles"': (Team, {}),
    "Team(): roles[1]: name: must be text, not 3": (Team, {"roles": [WRITER, {"name": 3}]}),
    'unknown option of a run "cycels"; did you mean "cycles"?': (RunOptions, {"cycels": 2}),
}
OF_RUN: dict[str, dict[str, Any]] = {
    "goal must be a text, not 3": {"goal": 3},
    'unknown argument "cycels"; did you mean "cycles"?': {"cycels": 3},
    'unknown argument "goal_file"; did you mean "goal"?': {"goal_file": "goal.md"},
    "on_event must be a function, not 3": {"on_event": 3},
    "ask_person must be a function, not 'yes'": {"ask_person": "yes"},
    "team must be a Team, not {'roles': []}": {"team": {"roles": []}},
    "run takes either team or roles, not both": {"team": TEAM, "roles": "roles"},
    "run takes either RunOptions or options as keywords, not both": {"goal": RunOptions(goal="a"), "cycles": 3},
    'unknown flow "cycels"; did you mean "cycles"?': {"flow": "cycels"},
    "cycles must be a whole number, not '3'": {"cycles": "3"},
    "cycles must be a whole number, not True": {"cycles": True},
    "cycles must be at least 1, not 0": {"cycles": 0},
    "config must be a list of texts, not 'model=a'": {"config": "model=a"},
    "inputs must be a mapping with names as keys, not ['a=1']": {"inputs": ["a=1"]},
    "inputs must be a mapping with names as keys, not {1: 2}": {"inputs": {1: 2}},
    'flow cycles: unknown input "most"': {"inputs": {"most": 3}},
    "workspace must be a path, not 3": {"workspace": 3},
    "the workspace /nowhere does not exist": {"workspace": "/nowhere"},
    "/nowhere: cannot be read: No such file or directory": {"roles": "/nowhere"},
    "'a/b' cannot be a run id": {"run_id": "a/b"},
    "worktree must be true or false, not 1": {"worktree": 1},
    "/nowhere is not an executable file": {"codex_bin": "/nowhere"},
    "repair_attempts must be at least 0 and at most 10, not 11": {"repair_attempts": 11},
    "playbook must be a name, a path, a mapping or a function, not 3": {"playbook": 3},
    'unknown playbook "roman-numeral"; did you mean "roman-numerals"?': {"playbook": "roman-numeral"},
    "yes must be true or false, not 'yes'": {"yes": "yes"},
    "max_turns must be at least 1, not 0": {"max_turns": 0},
    "max_tokens must be a whole number, not 1.5": {"max_tokens": 1.5},
    "max_cost must be more than 0, not -1": {"max_cost": -1.0},
    "max_seconds must be more than 0, not inf": {"max_seconds": float("inf")},
    "pytest_cmd must be a text, not ['pytest']": {"pytest_cmd": ["pytest"]},
    "test_seconds must be more than 0 and at most 86400, not 0": {"test_seconds": 0},
    "--python: /nowhere is not a Python executable": {"python": "/nowhere"},
    "added must be a list of AddedOptions of extensions, not 3": {"added": 3},
}
OF_OTHERS: Calls = {
    'unknown argument "cyles"; did you mean "cycles"?': (start, {"cyles": 3}),
    'unknown argument "cycls"; did you mean "cycles"?': (lambda **wrong: asyncio.run(enter(**wrong)), {"cycls": 3}),
    'no run "nosuch" in .*': (resume, {"reference": "nosuch"}),
    'unknown argument "cycless"; did you mean "cycles"?': (resume, {"reference": "latest", "cycless": 3}),
    "changes must be a mapping with options, not 4": (resume, {"reference": "latest", "changes": 4}),
    "ask_person must be a function, not 4": (resume, {"reference": "latest", "ask_person": 4}),
    "a resumed run keeps its goal": (resume, {"reference": "latest", "goal": "b"}),
    'unknown argument "strat"; did you mean "start"?': (forked, {"strat": "team"}),
    "fork takes either start or task, not both": (forked, {"start": "team", "task": "a"}),
    "a resumed run keeps its flow": (past, {"flow": "cycles"}),
    'no run "nosuch" .*': (load_run, {"reference": "nosuch"}),
    "the run first has not started any tasks": (cancel_task, {"reference": "latest", "task": "a"}),
}
WRONG_CALLS = (
    IN_PYTHON
    | {words: (run, {"goal": "reach it", "playbook": "auto", **wrong}) for words, wrong in OF_RUN.items()}
    | OF_OTHERS
)


@pytest.mark.parametrize("words", WRONG_CALLS)
def test_wrong_call_is_refused_in_words_that_name_the_argument(words: str, tmp_path: Path) -> None:
    call, wrong = WRONG_CALLS[words]
    runs_dir = tmp_path / "runs"
    if words in OF_OTHERS:
        make_run(runs_dir, "first")
    with pytest.raises(CodexMultiRoleError) as refused:
        call(**(wrong if words in IN_PYTHON else {"runs_dir": runs_dir, **wrong}))
    assert re.fullmatch(words if ".*" in words else re.escape(words), str(refused.value))
    assert len(list(runs_dir.glob("[!l]*/run.json"))) == (words in OF_OTHERS)
