"""What a type checker says of the Python of the pages, and of what an editor completes.

Without a plugin and without the settings of this repository, as somebody who only installed the package.
"""

from __future__ import annotations

import re
import textwrap

import pytest
from mypy import api
from pydantic import BaseModel

import codex_multi_role
from codex_multi_role.api.python_team import StepKeys
from codex_multi_role.option import Use
from codex_multi_role.run_options import OPTIONS
from tests.docs.pages import HOW_TO_ADD, blocks, page_names
from tests.support.examples import EXTENSION

pytestmark = pytest.mark.real

STARTED = {
    "run": {*OPTIONS, "added", "on_event", "ask_person", "team"},
    "start": {*OPTIONS, "added", "on_event", "ask_person", "team"},
    "start_async": {*OPTIONS, "added", "on_event", "ask_person", "team"},
    "resume": {"reference", "runs_dir", "changes", "on_event", "ask_person"},
    "fork": {"reference", "runs_dir", "start", "task", "changes", "on_event", "ask_person"},
}
"""The functions that start work, and the names of their arguments."""
COMPLETED = ("Team", "Flow", "Role", "Step", "Route")
WRONG_CALLS = {
    "Team()": "call-arg",
    "Team(roles='writer')": "arg-type",
    "Team(roles=[Step(ask='a')])": "list-item",
    "Team(roles=[], flwo=None)": "call-arg",
    "Flow(steps=[3])": "list-item",
    "Flow(steps=[], vars=[])": "arg-type",
    "Role(name=3)": "arg-type",
    "Role(name='a', depends_on='planner')": "arg-type",
    "Role(name='a', sandbox='open')": "arg-type",
    "Step(ask='a', wiht={})": "call-arg",
    "Step(ask='a', with_=3)": "arg-type",
    "Step('a')": "call-arg",
    "run('Add a test', workspce='.')": "call-arg",
    "run('Add a test', cycles='3')": "arg-type",
    "run('Add a test', config='model=a')": "arg-type",
    "run('Add a test', playbook=3)": "arg-type",
    "run('Add a test', playbook=print)": "arg-type",
    "run(3)": "arg-type",
    "run('Add a test', team={'roles': []})": "arg-type",
    "run('Add a test', on_event=3)": "arg-type",
    "start('Add a test', cycels=3)": "call-arg",
    "start_async('Add a test', cycels=3)": "call-arg",
    "resume('latest', cycels=3)": "call-arg",
    "fork('latest', cycels=3)": "call-arg",
    "resume('latest', goal='b')": "call-arg",
    "resume(3)": "arg-type",
    "fork('latest', start=3)": "arg-type",
    "load_run(3)": "arg-type",
    "load_run(runs_dir=3)": "arg-type",
    "load_run().resume(cycels=3)": "call-arg",
    "load_run().fork('team:1', on_event=3)": "arg-type",
    "load_run().totals.turn": "attr-defined",
    "load_run().turns[0].steps": "attr-defined",
    "RunOptions(cycels=2)": "call-arg",
    "resume('latest', changes={'goal': 'b'})": "arg-type",
    "answer('latest')": "call-arg",
    "answer('latest', approved='no')": "arg-type",
}
RIGHT_CALLS = """
    from types import MappingProxyType

    limits = MappingProxyType({"max_turns": 3})
    roles = [Role(name="a", behaviors={"apply_files": True}, limits=limits, tools=("calc",))]
    routes = [Route(when="cycle > 1", end="over"), Route(to="check")]
    inputs = {"most": 3}
    steps = [Step(ask="a", with_={"n": 1}, next=routes), Step(id="check", check="tests", retry={"attempts": 2})]
    team = Team(roles=roles, defaults={"reasoning_effort": "low"}, flow=Flow(steps=steps, inputs=inputs, outputs=["a"]))
    Team(roles=({"name": "a", "prompt_text": "Do it."},), flow={"steps": [{"ask": "a"}]})
    name: str | None = team.roles[0].name
"""


PYTHON = [
    (page, block)
    for page in page_names()
    if page != HOW_TO_ADD  # its exercise changes our own classes
    for block in blocks(page)
    if block.language == "python"
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What strict mypy says of each file, in one run: most of it is reading the package."""
    folder = tmp_path_factory.mktemp("typed")
    names = f"from codex_multi_role import {', '.join((*COMPLETED, *STARTED))}, RunOptions, answer, load_run\n"
    keywords = "from codex_multi_role.option_keywords import ForkKeywords, ResumeKeywords\n"
    revealed = [*COMPLETED, *STARTED, "ResumeKeywords()", "ForkKeywords()"]
    texts = {f"block_{number}_{re.sub('[^a-z]', '_', page)}": block.text for number, (page, block) in enumerate(PYTHON)}
    texts |= {"right": names + textwrap.dedent(RIGHT_CALLS), "wrong": names + "\n".join(WRONG_CALLS)}
    texts["completed"] = names + keywords + "\n".join(f"reveal_type({name})" for name in revealed)
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MYPYPATH", str(EXTENSION / "src"))  # as if it was installed
        said, problems, _ = api.run(["--strict", "--config-file=", f"--cache-dir={folder / 'cache'}", str(folder)])
    assert problems == ""
    return {name: "\n".join(line for line in said.splitlines() if f"/{name}.py:" in line) for name in texts}


@pytest.mark.extensions
def test_python_of_every_page_passes_a_type_checker(found: dict[str, str]) -> None:
    assert len(PYTHON) > 8
    assert [said for name, said in found.items() if name.startswith("block_") and said] == []


def test_editor_knows_every_argument(found: dict[str, str]) -> None:
    """All of them by the names that Python uses, no others, and what each accepts."""
    revealed = re.findall(r'Revealed type is "def \((.*)\) -> ', found["completed"])
    for name, parameters in zip(COMPLETED, revealed, strict=False):
        if name == "Step":  # of all kinds
            assert set(re.findall(r"'(\w+)'\?: ", parameters)) == set(StepKeys.__annotations__)
            continue
        made: type[BaseModel] = getattr(codex_multi_role, name)
        assert set(re.findall(r"(\w+): ", parameters)) == set(made.model_fields), name
        assert "Any" not in parameters.replace("output_schema: Any", "")
        assert "**" not in parameters


@pytest.mark.extensions
def test_editor_knows_every_option_of_a_run(found: dict[str, str]) -> None:
    *functions, resumed, forked = re.findall(r'Revealed type is "(.*)"', found["completed"])[len(COMPLETED) :]
    for (name, arguments), revealed in zip(STARTED.items(), functions, strict=True):
        assert {*re.findall(r"(\w+)'?\??: ", revealed)} - {"options"} >= arguments, name
    assert set(re.findall(r"'(\w+)'\??: ", resumed)) == _given(Use.RESUME)
    assert set(re.findall(r"'(\w+)'\??: ", forked)) == _given(Use.FORK)


def _given(use: Use) -> set[str]:
    return {"added", *(name for name, each in OPTIONS.items() if use in each.use)}


def test_type_checker_accepts_what_people_write_and_refuses_the_rest(found: dict[str, str]) -> None:
    refused = re.findall(r"wrong\.py:(\d+): error: .*\[([a-z-]+)\]$", found["wrong"], re.MULTILINE)
    expected = [(str(line), code) for line, code in enumerate(WRONG_CALLS.values(), 2)]
    assert list(dict.fromkeys(refused)) == expected, found["wrong"]
    assert len(re.findall('"cycels" for .*; did you mean "cycles"', found["wrong"])) == 6
    assert found["right"] == ""
