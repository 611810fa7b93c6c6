"""Runs of the test generation flows on the real binary, with answers that a test scripts."""

from __future__ import annotations

import builtins
from ast import literal_eval
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codex_multi_role import RunReport
from codex_multi_role.extensions.test_generation.plan_items import target_module, usable_items
from tests.support.teams import Record, TeamFolder, read
from tests.support.workspaces import write_files

SIGN = "def sign(number):\n    if number < 0:\n        return -1\n    return 1\n"
ZERO = """def sign(number):
    \"\"\"The sign of a number; that of zero is 0.\"\"\"
    if number < 0:
        return -1
    return 1
"""
IMPORT = "from sign import sign\n\n\n"
BELOW = "def test_below():\n    assert sign(-3) == -1\n"
ABOVE = "def test_above():\n    assert sign(4) == 1\n"
CONTRARY = "def test_zero():\n    assert sign(0) == 1\n"


def item(name: str, expected: object, target: str = "sign", given: str = "", **more: object) -> Record:
    """An item of a test plan: a call of ``target`` is expected to give a value, or to raise what has that name."""
    call = {"id": name, "why": f"why {name}", "source": "name", "call": f"{target}({given})"}
    return {**call, "expect": expectation(expected), **more}


def expectation(expected: object) -> Record:
    if str(expected) in ("True", "False", "None"):
        return {"is": str(expected).lower()}
    if str(expected) in vars(builtins):
        return {"raises": str(expected)}
    try:
        literal_eval(str(expected))
    except (ValueError, SyntaxError):
        return {"equals": repr(expected)}
    return {"equals": str(expected)}


def judged(item: Record, source: str, module: str, verdict: str = "", **more: object) -> Record:
    """The item as a state of the flow has it."""
    known = dict.fromkeys(("docstring", "readme", "caller"), source)
    (found,), refused = usable_items([], [item], target_module(source, module), known, 1)
    assert not refused
    return {**found, "verdict": verdict, **more}


P1, P2 = item("P1", "-1", given="-3"), item("P2", "1", given="4")
WRONG = item("P3", "0", given="0", source="docstring", quote="that of zero is 0")
"""What the code of `ZERO` does not hold, and what a developer writes who takes it for right: `CONTRARY`."""


def plan(*items: Record) -> Record:
    """A planner's answer."""
    return {"json": {"plan": list(items)}}


def code(text: str) -> Record:
    """A developer's answer."""
    return {"json": {"code": text}}


class Generation:
    """A workspace of ``files`` and the answers of the roles; ``run`` says what came of it."""

    def __init__(self, folder: Path, files: Mapping[str, str], **plays: list[Record]) -> None:
        self.team = TeamFolder(folder, {"bystander": {}}, plays)
        write_files(self.team.workspace, files)

    def run(self, target: str, flow: str = "testgen", sandbox: bool = False, **inputs: object) -> RunReport:
        """Without mutants and a look for flaky tests, unless ``inputs`` say so: they take most of the time."""
        given = {"target": target, "mutation": False, "runs": 1, **inputs}
        as_text = {name: str(value) for name, value in given.items()}
        self.report = self.team.run(flow=flow, inputs=as_text, test_sandbox=sandbox)
        return self.report

    @property
    def results(self) -> list[Record]:
        """The results of the run, one per file under test."""
        document: Record = read(self.report.folder / "results.json")
        assert (document["run_id"], document["flow"]) == (
            self.report.run_id,
            read(self.report.folder / "run.json")["flow"],
        )
        found: list[Record] = document["results"]
        return found

    @property
    def rounds(self) -> list[tuple[str, str]]:
        """Mode and verdict of every iteration of the first file."""
        return [(each["mode"], each["status"]) for each in self.results[0]["rounds"]]

    @property
    def asked(self) -> list[str]:
        """The roles of the turns, in order."""
        return [event["role"] for event in self.team.of_type("turn_started")]

    def prompt(self, role: str, turn: int) -> str:
        return (self.report.folder / role / f"turn_{turn:03d}" / "prompt.txt").read_text()

    def text(self, name: str = "tests/test_sign.py") -> str:
        """A file of the workspace."""
        return (self.team.workspace / name).read_text()

    def metrics(self, index: int = 0) -> Any:
        """The metrics of the file under test number ``index``."""
        return self.results[index]["metrics"]
