"""What a role puts into ``analysis_md`` can be read by the roles after it, wherever they work."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.steps.ask import MAX_ANALYSIS_CHARACTERS, with_analyses
from tests.support.teams import Record, TeamFolder, read, say

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

TEXT = "# Why\n\nBecause of the analysis."
RUN = "the-run"


def team_of(folder: Path, reader: Record) -> TeamFolder:
    path = folder / "runs" / RUN / "one" / "turn_001" / "analysis.md"
    steps = [{"call": "exec_command", "arguments": {"cmd": f"cat {path}"}}, say()]
    return TeamFolder(folder, {"one": {}, "two": reader}, {"one": [say(analysis_md=TEXT)], "two": [{"steps": steps}]})


@pytest.mark.usefixtures("real_codex")
def test_next_role_reads_the_analysis_in_its_sandbox(tmp_path: Path) -> None:
    team = team_of(tmp_path, {"sandbox": "read-only"})
    team.run(run_id=RUN, workspace=tmp_path)
    path = team.runs / RUN / "one" / "turn_001" / "analysis.md"
    assert f'"analysis_md_path": "{path}"' in (team.runs / RUN / "two/turn_001/prompt.txt").read_text()
    assert TEXT in (team.runs / RUN / "two/turn_001/items_text.md").read_text()
    assert path.read_text() == TEXT
    handoff = {"summary": "fine", "analysis_md_path": "one/turn_001/analysis.md"}
    assert read(team.runs / RUN / "one/turn_001/handoff.json") == handoff


@pytest.mark.usefixtures("real_codex")
def test_role_in_a_copy_of_the_workspace_reads_the_analysis(tmp_path: Path) -> None:
    team = team_of(tmp_path, {"sandbox": "workspace-write"})
    flow = "name: copied\nsteps:\n  - {id: a, ask: one}\n  - {id: b, ask: two, isolate: worktree}\n"
    (tmp_path / "roles" / "flows").mkdir()
    (tmp_path / "roles" / "flows" / "copied.yaml").write_text(flow)
    assert team.run(run_id=RUN, flow="copied").exit_code == 0
    assert TEXT in (team.runs / RUN / "two/turn_001/items_text.md").read_text()


@pytest.mark.usefixtures("real_codex")
def test_role_without_commands_gets_the_text_itself(tmp_path: Path) -> None:
    team = team_of(tmp_path, {"prompt_flags": {"allow_tools": False}})
    team.run(run_id=RUN)
    prompt = (team.runs / RUN / "two/turn_001/prompt.txt").read_text()
    assert '"analysis_md": "# Why\\n\\nBecause of the analysis."' in prompt
    assert "analysis_md_path" not in prompt


def test_only_an_analysis_of_the_run_is_put_into_a_prompt(tmp_path: Path) -> None:
    """A model may name any path in its handoff; a long analysis is cut."""
    role = RoleSpec.model_validate({"name": "r", "prompt_text": "t", "approval_policy": "untrusted"})
    turn = tmp_path / "run" / "one" / "turn_001"
    turn.mkdir(parents=True)
    (tmp_path / "analysis.md").write_text("not of the run")
    (turn / "analysis.md").write_text("x" * (MAX_ANALYSIS_CHARACTERS + 7))
    outside = (tmp_path / "analysis.md", tmp_path / "run" / "one" / ".." / ".." / "analysis.md", "/etc/passwd")
    (tmp_path.parent / "analysis.md").write_text("not of the run")
    for path in (*outside, tmp_path / "run" / ".." / ".." / "analysis.md", turn / "turn.json"):
        payload = {"one": {"analysis_md_path": str(path)}}
        assert with_analyses(role, payload, tmp_path / "run") == payload
    long = {"one": [{"analysis_md_path": str(turn / "analysis.md")}]}
    (found,) = with_analyses(role, long, tmp_path / "run")["one"]
    assert found == {"analysis_md": "x" * MAX_ANALYSIS_CHARACTERS + "\n[7 characters left out]"}
