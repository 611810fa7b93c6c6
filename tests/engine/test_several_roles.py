"""Several roles in one step: a list asks them at once, and a template chooses one of a closed list for each item."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError
from tests.support.teams import Record, TeamFolder, say, with_flow

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

PANEL: Record = {"id": "panel", "ask": ["security", "style", "logic"]}
CHAIR: Record = {"id": "chair", "ask": "chair"}
BY_DATA: Record = {
    "id": "work",
    "ask": "{{ item.role }}",
    "roles": ["python", "web"],
    "for_each": "{{ steps.plan.tasks }}",
}


def panel(folder: Path, *steps: Record, **plays: list[Record]) -> TeamFolder:
    answers = {name: [say(name, verdict="good")] * 3 for name in ("security", "style", "logic", "chair")}
    answers |= plays
    return with_flow(TeamFolder(folder, {name: {} for name in answers}, answers), {"steps": [*steps]})


def test_list_asks_each_role_once_about_the_answer_before_and_passes_theirs_on(tmp_path: Path) -> None:
    route = {"when": "steps.panel.by_role.style.verdict != steps.panel.results[0].verdict", "end": "odd", "exit": 1}
    draft = {"id": "draft", "ask": "chair"}
    team = panel(tmp_path, draft, {**PANEL, "next": [route, {"to": "chair"}]}, CHAIR, chair=[say("a draft"), say()])
    assert team.run(flow="own").exit_code == 0
    assert sorted(role for role, *_ in team.turns()) == ["chair", "chair", "logic", "security", "style"]
    for role in PANEL["ask"]:
        assert '"summary": "a draft"' in team.prompt(role)
        assert '"item"' not in team.prompt(role)
    given = team.prompt("chair", 2)
    assert given.index('"role": "security"') < given.index('"role": "style"') < given.index('"role": "logic"')


def test_contract_of_each_role_has_what_is_read_of_it(tmp_path: Path) -> None:
    route = {"when": "steps.panel.by_role.style.score < 3", "end": "bad", "exit": 1}
    team = panel(tmp_path, {**PANEL, "next": [route]}, style=[{**say(), "repairs": [say(score=4)]}])
    team.run(flow="own")
    assert "score: a number" in team.prompt("style")
    assert "score" not in team.prompt("logic")


def test_failed_role_ends_the_run_or_is_a_result(tmp_path: Path) -> None:
    broken: list[Record] = [{"fault": {"status": 400}}]
    assert panel(tmp_path / "ends", PANEL, CHAIR, style=broken).run(flow="own").exit_code == 3
    route = {"when": "steps.panel.by_role.style.status == 'failed'", "to": "chair"}
    team = panel(tmp_path / "goes", {**PANEL, "for_each": {"allow": ["failed"]}, "next": [route]}, CHAIR, style=broken)
    assert team.run(flow="own").exit_code == 0


def chosen(folder: Path, *tasks: Record, **changes: object) -> TeamFolder:
    plan = {"id": "plan", "ask": "chair", "reply": {"type": "object"}}
    step = {**BY_DATA, "for_each": {"items": "{{ steps.plan.tasks }}", "max_items": 5, **changes}}
    answers = {"chair": [say(tasks=[*tasks])] * 3, "python": [say()] * 3, "web": [say()] * 3}
    return with_flow(
        TeamFolder(folder, {name: {} for name in answers}, answers),
        {"vars": {"tasks": [*tasks]}, "steps": [plan, step]},
    )


def test_role_is_chosen_by_the_item(tmp_path: Path) -> None:
    team = chosen(tmp_path, {"role": "web"}, {"role": "python"}, {"role": "web"})
    assert team.run(flow="own").exit_code == 0
    assert [role for role, *_ in team.turns()] == ["chair", "web", "python", "web"]


def test_role_outside_the_list_is_asked_for_again(tmp_path: Path) -> None:
    team = chosen(tmp_path, {"role": "rust"})
    team.write_plays(chair=[{**say(tasks=[{"role": "rust"}]), "repairs": [say(tasks=[{"role": "web"}])]}])
    assert team.run(flow="own").exit_code == 0
    assert [role for role, *_ in team.turns()] == ["chair", "chair", "web"]
    assert "must be one of python, web, not 'rust'" in team.prompt("chair", 2)


def test_role_outside_the_list_is_a_failure_of_its_item_and_no_wrong_usage(tmp_path: Path) -> None:
    given = {"items": "{{ vars.tasks }}"}  # no role can be asked again for what no role has answered
    report = chosen(tmp_path / "ends", {"role": "web"}, {"role": "rust"}, **given).run(flow="own")
    assert (report.exit_code, "must be one of python, web, not 'rust'" in report.reason) == (3, True)
    team = chosen(tmp_path / "goes", {"role": "rust"}, {"role": "web"}, **given, allow=["failed"])
    assert team.run(flow="own").exit_code == 0


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({"ask": ["style", "logic"]}, "needs an id"),
        ({"id": "x", "ask": ["style", "style"]}, "names each role once"),
        ({"id": "x", "ask": ["style", "logic"], "for_each": [1]}, "for_each does not go with a list"),
        ({"id": "x", "ask": "{{ item }}", "for_each": ["style"]}, "needs roles"),
        ({"id": "x", "ask": "{{ goal }}", "roles": ["style"]}, "needs for_each"),
        ({"id": "x", "ask": "style", "roles": ["style"]}, "belongs to a template"),
        ({"id": "x", "ask": "{{ item.x.y }}", "roles": ["nobody"], "for_each": [1]}, "nobody"),
        ({"id": "x", "ask": "{{ itme }}", "roles": ["style"], "for_each": [1]}, "itme"),
    ],
)
def test_mistakes_are_found_before_a_run(tmp_path: Path, step: Record, problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem):
        panel(tmp_path, step).run(flow="own")
