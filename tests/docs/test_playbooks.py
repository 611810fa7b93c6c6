"""Every playbook of its page is played, and answers as the page says.

Costs: five runs without a model.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role import load_run
from tests.docs.pages import blocks
from tests.support.teams import TeamFolder

pytestmark = pytest.mark.usefixtures("scripted_codex")

PLAYBOOKS = [block.text for block in blocks("docs/reference/playbooks.md") if block.language == "yaml"]
ANSWERS: dict[str, dict[str, list[str] | None]] = {
    "two-visits": {"writer": ["a first draft", "the draft of visit 2", "the draft of visit 3"], "reader": None},
    "by-prompt": {"reviewer": ["say more about rivers", "good"]},
    "slow": {"writer": ["it took a while"]},
    "wrong-at-first": {"writer": ["the answer of repair 1", "the answer of attempt 2"]},
    "work-first": {"writer": ["it said rivers"]},
}
"""What each role says, visit by visit; None: always what `default` has."""


@pytest.mark.parametrize("name", [*ANSWERS][:-1])
def test_playbook_of_the_page_plays(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_multi_role.steps.recovery.FIRST_PAUSE_SECONDS", 0.01)
    play(name, tmp_path)


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_playbook_with_a_command_plays(tmp_path: Path) -> None:
    """A Codex of ours has no tool that runs commands."""
    play([*ANSWERS][-1], tmp_path)


def play(name: str, folder: Path) -> None:
    said = ANSWERS[name]
    cycles = max(len(answers or ()) for answers in said.values())
    team = TeamFolder(folder, {role: {"behaviors": {"can_finish": True}} for role in said}, {})
    team.playbook.write_text(dict(zip(ANSWERS, PLAYBOOKS, strict=True))[name])
    report = load_run(team.run(goal="A haiku about rivers", cycles=cycles).run_id, runs_dir=team.runs)
    assert report.record["playbook"] == name
    for role, answers in said.items():
        told = [turn.handoff["summary"] for turn in report.turns if turn.role == role and turn.handoff]
        assert told == (answers or ["nothing to add"] * cycles)
