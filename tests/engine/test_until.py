"""What ends a fan-out or a step early: results that suffice, or `limits: {seconds}`; nothing of the rest is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role import run
from codex_multi_role.errors import DefinitionError
from codex_multi_role.presentation.course import Course
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.questions import Questions
from tests.support.processes import interrupted
from tests.support.reviews import until_over
from tests.support.teams import NEVER, Record, TeamFolder, read, say, with_flow

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

FIRST_GOOD = "results | selectattr('verdict', 'equalto', 'good') | list | length > 0"
GOOD, POOR = say(verdict="good"), say(verdict="poor")
RACE: Record = {"id": "race", "ask": ["one", "two", "three"], "for_each": {"until": FIRST_GOOD}}
LAST: Record = {
    "id": "last",
    "ask": "last",
    "prompt": "{{ steps.race.results | selectattr('status', 'equalto', 'done') | list | length }} done",
}


def race(folder: Path, one: Record, two: Record, three: Record, **changes: object) -> TeamFolder:
    plays = {"one": [one] * 2, "two": [two] * 2, "three": [three] * 2, "last": [say()] * 2}
    return with_flow(TeamFolder(folder, {name: {} for name in plays}, plays), {"steps": [{**RACE, **changes}, LAST]})


def told_tones(team: TeamFolder) -> list[str]:
    """How views show the step, then its items."""
    course = Course.of_run(RunFolder((team.runs / "latest").resolve()))
    return [course.tone_of(each) for each in (course.run.parts[0], *course.run.parts[0].parts)]


def states(team: TeamFolder) -> list[str]:
    items = sorted((team.runs / "latest/items").glob("race.1.*.json"))
    return ["skipped" if read(each)["outcome"]["skipped"] else "ended" for each in items]


@pytest.mark.usefixtures("real_codex")
def test_first_good_result_ends_what_still_runs(tmp_path: Path) -> None:
    team = race(tmp_path, NEVER, GOOD, NEVER)
    report = team.run(flow="own")
    assert (report.exit_code, states(team)) == (0, ["skipped", "ended", "skipped"])
    assert told_tones(team) == ["good", "unused", "good", "unused"]
    assert "1 done" in (team.runs / "latest/last/turn_001/prompt.txt").read_text()


def test_result_that_is_never_met_is_bad_and_failed_items_are_results(tmp_path: Path) -> None:
    failing: Record = {"fault": {"status": 400}}
    team = race(tmp_path / "ends", POOR, failing, POOR)
    report = team.run(flow="own")
    assert (report.exit_code, report.outcome, told_tones(team)[0]) == (1, "race_failed", "warn")
    assert "until was not met" in report.reason
    route = {"when": "not steps.race.met and steps.race.failed == 1", "to": "last"}
    assert race(tmp_path / "goes", POOR, failing, POOR, next=[route]).run(flow="own").exit_code == 0


def test_stopped_run_decides_the_same(tmp_path: Path) -> None:
    """The stop comes after the decision, in the step behind it; nothing of the race is asked again."""
    team = race(tmp_path, POOR, GOOD, NEVER)
    team.write_plays(last=[NEVER, say()])
    assert interrupted(team, ("turn_started", "last"), flow="own").exit_code == 130
    team.write_plays(last=[say()])
    report = team.resume(playbook=str(team.playbook))
    assert report.exit_code == 0, report
    assert [role for role, *_ in team.turns()] == ["last"]


@pytest.mark.parametrize("concurrency", [3, 1])
def test_copies_of_cancelled_items_are_removed(tmp_path: Path, concurrency: int) -> None:
    """One at a time, the last item is cancelled before it has a copy."""
    first, fan_out = NEVER if concurrency > 1 else POOR, {"until": FIRST_GOOD, "concurrency": concurrency}
    team = race(tmp_path, first, GOOD, NEVER, for_each=fan_out, isolate={"merge": "none"})
    report = team.run(flow="own")
    assert report.exit_code == 0, report
    assert copies_left(team) == (["race.1.1"] if concurrency > 1 else ["race.1.0", "race.1.1"])


def copies_left(team: TeamFolder) -> list[str]:
    copies = read(team.runs / "latest/worktrees/manifest.json")["copies"]
    return [each["key"] for each in copies if not each.get("removed_at")]


def test_copies_within_a_cancelled_call_are_removed(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}, "slow": {}}, {"one": [GOOD], "slow": [NEVER]})
    inner: Record = {
        "id": "ask",
        "ask": "{{ item }}",
        "roles": ["one", "slow"],
        "for_each": {"items": "{{ [inputs.role] }}", "max_items": 1},
        "isolate": {"merge": "none"},
    }
    with_flow(team, {"inputs": {"role": "one"}, "steps": [inner]}, "try")
    call: Record = {"id": "race", "call": "try", "with": {"role": "{{ item }}"}, "for_each": {}}
    call["for_each"] = {"items": ["slow", "one"], "concurrency": 2, "until": "results | length > 0"}
    with_flow(team, {"steps": [call]})
    report = team.run(flow="own")
    assert report.exit_code == 0, report
    assert copies_left(team) == ["race.1.1/ask.1.0"]


def test_failed_item_may_cancel_what_runs(tmp_path: Path) -> None:
    failing: Record = {"fault": {"status": 400}}
    team = race(tmp_path, NEVER, failing, NEVER, for_each={"on_failure": "cancel"})
    report = team.run(flow="own")
    assert (report.exit_code, "role two" in report.reason) == (3, True), report


def test_item_that_waits_for_a_person_is_not_needed_either(tmp_path: Path) -> None:
    """The run parks only for the question behind the race."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [GOOD]})
    steps: list[Record] = [{"id": "ok", "review": "Well?", "next": [{"end": "reviewed"}]}]
    asked: Record = {"id": "one", "ask": "one"}
    choose: Record = {"check": "command", "id": "choose", "with": {"argv": ["true"]}}
    choose["next"] = [{"when": "inputs.who == 'person'", "to": "ok"}, {"to": "one"}]
    with_flow(
        team, {"inputs": {"who": "person"}, "steps": [choose, asked | {"next": [{"end": "asked"}]}, *steps]}, "try"
    )
    call: Record = {"id": "race", "call": "try", "with": {"who": "{{ item }}"}, "for_each": {}}
    call["for_each"] = {"items": ["person", "role"], "until": "results | length > 0"}
    with_flow(team, {"steps": [call, {"id": "ship", "review": "Ship?"}]})
    report = team.run(flow="own")
    assert report.exit_code == 4, report
    assert states(team) == ["skipped", "ended"]
    assert [each.question for each in Questions(team.runs / "latest").pending()] == ["Ship?"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"for_each": {"until": "resluts"}}, "resluts"),
        ({"isolate": "worktree"}, "requires merge: none"),
        ({"ask": "one"}, 'missing key "items"'),
    ],
)
def test_mistakes_are_found_before_a_run(tmp_path: Path, changes: Record, problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem):
        race(tmp_path, POOR, GOOD, POOR, **changes).run(flow="own")


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
    team.write_plays(one=[say()] * 3)
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
    team.write_plays(one=[say()] * 2, last=[NEVER] * 2)
    with_flow(team, {"steps": [{"id": "all", "ask": "*", "limits": {"seconds": 1.5}}]})
    report = team.run(flow="own")
    assert (report.exit_code, report.outcome) == (3, "step_timed_out"), report
    team.write_plays(last=[say()] * 2)
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
