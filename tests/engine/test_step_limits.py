"""``limits: {seconds}``: past it, a step or an item of any kind has failed, and nothing of it is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role import run
from tests.support.reviews import until_over
from tests.support.teams import NEVER, Record, TeamFolder, read, say, with_flow

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

LIMIT: Record = {"limits": {"seconds": 0.5}}
SLEEP: Record = {"check": "command", "with": {"argv": ["sleep", "60"]}}


def limited(folder: Path, step: Record, *plays: Record) -> TeamFolder:
    team = TeamFolder(folder, {"one": {}, "last": {}}, {"one": [*(plays or (NEVER,))] * 3, "last": [say()] * 2})
    with_flow(team, {"steps": [{"id": "slow", **SLEEP}]}, "inner")
    return with_flow(team, {"steps": [{"id": "x", **step, **LIMIT}, {"id": "last", "ask": "last"}]})


KINDS: dict[str, Record] = {
    "ask": {"ask": "one"},
    "check": SLEEP,
    "call": {"call": "inner"},
    "ask with retry": {"ask": "one", "retry": {"attempts": 3, "backoff_seconds": 0}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_step_that_takes_too_long_has_failed(tmp_path: Path, kind: str) -> None:
    report = limited(tmp_path, KINDS[kind]).run(flow="own")
    assert (report.exit_code, report.outcome) == (3, "step_timed_out"), report
    assert "step x took longer than its limit of 0.5 s" in report.reason


def test_resume_tries_again_and_what_was_skipped_stays_so(tmp_path: Path) -> None:
    team = limited(tmp_path / "again", {"ask": "one"}, NEVER)
    assert team.run(flow="own").exit_code == 3
    team.plays["one"] = [say()] * 3
    team.write_plays()
    assert team.resume(playbook=str(team.playbook)).exit_code == 0
    team = limited(tmp_path / "stays", {"ask": "one", "allow": ["failed"]})
    with_flow(
        team, {"steps": [{"id": "x", "ask": "one", "allow": ["failed"], **LIMIT}, {"id": "ok", "review": "Good?"}]}
    )
    assert team.run(flow="own").exit_code == 4
    assert team.resume(yes=True).exit_code == 0
    assert team.turns() == []


def test_limit_is_that_of_each_item(tmp_path: Path) -> None:
    step = {
        "ask": "one",
        "for_each": {"items": ["a", "b"], "concurrency": 1, "allow": ["failed"]},
        "prompt": "{{ item }}",
    }
    team = limited(tmp_path, step, {"choose": [{"when": "'\na\n' in prompt", **NEVER}, say()]})
    assert team.run(flow="own").exit_code == 0
    errors = [read(team.runs / f"latest/items/x.1.{index}.json")["outcome"]["error"] for index in (0, 1)]
    assert [bool(error) for error in errors] == [True, False], errors


def test_round_of_every_role_that_takes_too_long(tmp_path: Path) -> None:
    """What was answered in time is not asked again."""
    team = limited(tmp_path, {"ask": "*"})
    team.plays |= {"one": [say()] * 2, "last": [NEVER] * 2}
    team.write_plays()
    with_flow(team, {"steps": [{"id": "all", "ask": "*", "limits": {"seconds": 1.5}}]})
    report = team.run(flow="own")
    assert (report.exit_code, report.outcome) == (3, "step_timed_out"), report
    team.plays["last"] = [say()] * 2
    team.write_plays()
    assert team.resume(playbook=str(team.playbook)).exit_code == 0
    assert [role for role, *_ in team.turns()] == ["last"]


def test_person_who_does_not_answer_in_time(tmp_path: Path) -> None:
    team = limited(tmp_path, {"review": "Good?"})
    report = run(team.options(flow="own"), ask_person=until_over)
    assert (report.exit_code, report.outcome) == (3, "step_timed_out")


def test_step_within_its_limit_is_as_without(tmp_path: Path) -> None:
    team = limited(tmp_path, {"ask": "one", "limits": {"seconds": 60}}, say())
    with_flow(team, {"steps": [{"id": "x", "ask": "one", "limits": {"seconds": 60}}, {"id": "y", "ask": "one"}]})
    assert team.run(flow="own").exit_code == 0
    threads = {read(team.runs / f"latest/one/turn_{number:03d}/turn.json")["thread_id"] for number in (1, 2)}
    assert len(threads) == 1
