"""Each example is valid, and plays to its goal without a model.

Costs: each example is validated and played by commands.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.newcomer import give
from tests.docs.pages import TOP, commands
from tests.support.console import console
from tests.support.examples import EXAMPLES, EXTENSION, OUTCOMES, copy_of

pytestmark = [pytest.mark.extensions, pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

RUN_TESTS = {
    "fix-until-green": pytest.mark.long,
    "pair": pytest.mark.long,
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_is_valid(example: Path, tmp_path: Path) -> None:
    folder = copy_of(example, tmp_path)
    flows = [file.stem for file in folder.glob("roles/flows/*.yaml")]
    for validate in (["roles", "validate"], *(["flows", "validate", flow] for flow in flows)):
        valid = console(*validate, folder=folder)
        assert valid.returncode == 0, valid.stderr
    for command in commands(f"examples/{example.name}/README.md"):
        done = give(command.replace("codex-multi-role --", "codex-multi-role --dry-run --"), folder)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "example", [pytest.param(each, marks=RUN_TESTS.get(each.name, ()), id=each.name) for each in EXAMPLES]
)
def test_example_plays(example: Path, tmp_path: Path) -> None:
    folder = copy_of(example, tmp_path)
    for command in commands(f"examples/{example.name}/README.md"):
        done = give(command, folder)
        assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((folder / "runs/latest/run.json").read_text())
    outcome, files = OUTCOMES[example.name]
    assert record["outcome"] == outcome
    for name, text in files.items():
        assert text in (Path(record["workspace"]) / name).read_text()


def test_overview_lists_every_example() -> None:
    listed = re.findall(r"\]\(([^)/]+)/README\.md\)", (TOP / "examples/README.md").read_text())
    assert sorted(listed) == sorted(example.name for example in (*EXAMPLES, EXTENSION))
