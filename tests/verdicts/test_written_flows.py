"""Flows as people write them: no right answer is refused, and hardly a wrong one makes a later step fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError
from codex_multi_role.playbook.script import Playbook
from codex_multi_role.reading.json_types import Json
from tests.docs.pages import TOP
from tests.support.scripted import Said
from tests.verdicts.playing import Answers
from tests.verdicts.workflows import WORKFLOWS
from tests.verdicts.written_flows import Game, Judged, ported, written, written_flows

SAMPLE = 25
"""One of so many mutations is played in the gate."""
MOST_WRONG_VALUES = 0.02
RED: Json = {"status": "failed", "verdict": "failed", "failed": 1, "exit_code": 1}
GREEN: Json = {"status": "passed", "verdict": "passed", "exit_code": 0}
FILE: Json = {"status": "written", "path": "a.md", "content": ""}
EXAMPLES: Mapping[str, tuple[str, dict[str, list[Json]]]] = {
    "best-of-two": ("best", {"merge": [{"status": "merged"}]}),
    "fix-until-green": ("fix", {"test": [RED, GREEN]}),
    "per-file": ("summarize", {"list": [{"status": "ok", "exit_code": 0, "json": ["a.py", "b.py"]}], "write": [FILE]}),
    "plan-approval": ("planned", {}),
    "review-panel": ("reviewed", {}),
    "sections": ("report", {"write": [FILE]}),
    "translate": ("translate", {"read": [{**FILE, "status": "read"}], "write": [FILE]}),
    "triage": ("triage", {}),
}
"""The flow of each example, and the results of its checks that are not computed."""
INPUTS: Mapping[str, Json] = {"translate": {"file": "hello.md", "language": "French"}}
Loads = Mapping[str, Callable[[Path], Game]]


def examples() -> Iterator[tuple[str, Callable[[Path], Game]]]:
    for name, (flow, checks) in EXAMPLES.items():
        folder = TOP / "examples" / name
        playbook, approvals = Playbook.load(folder / "playbook.yaml"), [Said()] * 5
        answers = Answers(playbook, checks, reviews=approvals, inputs=INPUTS.get(name, {}))
        yield name, partial(ported, name, folder / "roles", flow, answers)


def workflows() -> Iterator[tuple[str, Callable[[Path], Game]]]:
    for each in WORKFLOWS:
        answers = Answers.load(each.folder / "answers" / f"{each.good[0].answers}.yaml")
        yield each.name, partial(ported, each.name, each.folder, each.folder.name, answers)


DOCUMENTS = written_flows()
WRITTEN: Loads = {name: partial(written, name, each) for name, each in DOCUMENTS.items()}
GAMES: Loads = {**WRITTEN, **dict(examples())}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> list[Judged]:
    return judged(WRITTEN, tmp_path_factory.mktemp("sample"), SAMPLE)


def judged(games: Loads, folder: Path, every: int) -> list[Judged]:
    """One of ``every`` mutations of the flows that are valid."""
    found: list[Judged] = []
    for name, load in games.items():
        try:
            found += load(folder / name).judge(every)
        except DefinitionError:
            continue  # fails in the test of its right answers
    return found


def listed(found: Iterable[Judged]) -> str:
    return "\n".join(map(str, found))


@pytest.mark.parametrize("name", GAMES)
def test_right_answers_are_not_refused(name: str, tmp_path: Path) -> None:
    game = GAMES[name](tmp_path / name)
    assert not game.right.failed
    for played in (game.right, game.play(judged=True)):
        exit_code, outcome = played.end
        assert game.ends in ((exit_code, outcome), (exit_code, "")), played.ending.reason


@pytest.mark.real  # takes seconds
def test_wrong_answers_hardly_fail_a_later_step(sample: list[Judged]) -> None:
    check_wrong_values(sample)


@pytest.mark.real
def test_answers_that_templates_can_use_are_accepted(sample: list[Judged]) -> None:
    check_needless_refusals(sample)


@pytest.mark.long(
    "verdicts/test_written_flows.py::test_wrong_answers_hardly_fail_a_later_step",
    "verdicts/test_written_flows.py::test_answers_that_templates_can_use_are_accepted",
    "verdicts/test_wrong_answers.py::test_wrong_answer_ends_by_the_rules",
)
@pytest.mark.parametrize("games", [WRITTEN, {**dict(examples()), **dict(workflows())}], ids=["written", "ported"])
def test_every_wrong_answer_is_refused_or_used(games: Loads, tmp_path: Path) -> None:
    """None is a wrong usage, even without contracts."""
    found = judged(games, tmp_path, 1)
    ends = [(each, each.played.ending) for each in found]
    wrong = [each for each, end in ends if end.exit_code not in (0, 1, 3) or "_error" in end.outcome]
    assert not wrong, listed(wrong)
    check_wrong_values(found)
    check_needless_refusals(found)


def check_wrong_values(found: list[Judged]) -> None:
    wrong = [each for each in found if each.is_wrong_value]
    share = len(wrong) / len(found)
    assert share <= MOST_WRONG_VALUES, f"{share:.1%} of {len(found)} mutations:\n{listed(wrong)}"


def check_needless_refusals(found: list[Judged]) -> None:
    """An answer of another type may be refused, because use gives the type."""
    refused = [each for each in found if each.is_needlessly_refused and each.mutation.keeps_type]
    assert not refused, f"{len(refused)} of {len(found)} mutations:\n{listed(refused)}"


def test_flows_are_many_and_of_other_projects_as_well() -> None:
    sources = [each["source"] for each in DOCUMENTS.values() if "source" in each]
    assert (len(DOCUMENTS) >= 120, len(sources) >= 30) == (True, True)
