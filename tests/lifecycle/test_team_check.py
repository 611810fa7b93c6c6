from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.catalogs import CATALOG, write_team
from tests.support.console import console
from tests.support.teams import TeamFolder, say, warnings, with_flow
from tests.support.workspaces import write_files

MISTAKES = {
    "catalog.yaml": CATALOG.replace("model_env", "modle_env")
    + "  - role_file: extra.yaml\n    reasoning_effort: hihg\n",
    "extra.yaml": "name: extra\nprompt_txt: Think.\nlimits: {turn_seconds: 0}\n",
    "flows/own.yaml": "steps:\n  - {ask: thinker, next: [{to: doar}]}\n  - {id: doer, ask: doer, prmpt: x}\n",
    "flows/other.yaml": "steps:\n\t- {ask: thinker}\n",
    "playbooks/own.yaml": "name: own\nroles:\n  thinker:\n    - {jsn: {summary: fine}}\n",
}


def test_mistakes_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    project = write_team(tmp_path)
    write_files(project / "team", MISTAKES)
    done = console("roles", "validate", "--roles", "team", folder=project)
    assert done.returncode == 2
    assert [line.removeprefix("error: ") for line in done.stderr.splitlines() if line.startswith("error")] == [
        'team/catalog.yaml:6:5: role thinker: unknown key "modle_env"; did you mean "model_env"?',
        'team/catalog.yaml:12:5: role extra: reasoning_effort: unknown effort "hihg"; did you mean "high"?',
        'team/extra.yaml:2:1: unknown key "prompt_txt"; did you mean "prompt_text"?',
        "team/extra.yaml:3:10: limits.turn_seconds: must be more than 0, not 0",
        "team/flows/other.yaml:2:1: a value cannot begin with a tab or one of % @ `",
        'team/flows/own.yaml:3:27: step doer: unknown key "prmpt"; did you mean "prompt"?',
        'team/playbooks/own.yaml:4:8: roles.thinker[0]: unknown key "jsn"; did you mean "json"?',
    ]
    assert console("flows", "validate", "--roles", "team", folder=project).stderr == done.stderr


def test_mistakes_across_files_are_reported_at_once(tmp_path: Path) -> None:
    project = write_team(tmp_path)
    flow = """\
steps:
  - {ask: thinkr, prompt: "{{ gaol }} {{ vars.x }}", next: [{when: "steps.doer.a ?", to: doar}]}
  - {ask: doer, limits: {visits: 2}, set: {x: 1}}
"""
    write_files(project / "team", {"flows/own.yaml": flow, "flows/second.yaml": "steps: [{check: tset}]\n"})
    done = console("roles", "validate", "--roles", "team", folder=project)
    assert [line.partition("flows/")[2] for line in done.stderr.splitlines() if line.startswith("error")] == [
        'own.yaml:2:6: step thinkr: ask: unknown role "thinkr"; did you mean "thinker"?',
        'own.yaml:2:19: step thinkr: prompt: unknown template name "gaol"; did you mean "goal"?',
        'own.yaml:2:19: step thinkr: prompt: unknown var "x"',
        'own.yaml:2:62: step thinkr: next[0].when: unexpected character "?"',
        'own.yaml:2:86: step thinkr: next[0].to: unknown step "doar"; did you mean "doer"?',
        'own.yaml:3:44: step doer: set: unknown run variable "x"',
        'second.yaml:1:10: step tset: check: unknown check "tset"',
    ]


def test_mistake_in_a_called_flow_is_printed_once(tmp_path: Path) -> None:
    project = write_team(tmp_path)
    caller = "steps: [{call: below}]\n"
    write_files(
        project / "team", {f"flows/{name}.yaml": caller for name in ("one", "two")} | {"flows/below.yaml": "steps: 3\n"}
    )
    for command in ("flows validate one two", "roles validate"):
        done = console(*command.split(), "--roles", "team", folder=project)
        assert done.returncode == 2
        assert done.stderr.count("team/flows/below.yaml:1:1: steps: must be a list, not 3") == 1


def test_team_that_cannot_finish_is_reported(tmp_path: Path) -> None:
    """It may run all the same, so this is a warning."""
    project = write_team(tmp_path)
    problem = (
        "team/catalog.yaml:3:1: roles: no role can finish: the flow cycles reaches its goal only if a role says DONE"
    )
    named = console("flows", "validate", "cycles", "--roles", "team", folder=project)
    assert (named.returncode, named.stderr.splitlines()[0]) == (0, f"warning: {problem}")
    done = console("roles", "validate", "--roles", "team", folder=project)
    assert (done.returncode, done.stderr) == (0, f"warning: {problem}\n")
    write_files(project / "team", {"flows/own.yaml": "steps: [{ask: thinker}]\n"})
    assert console("roles", "validate", "--roles", "team", folder=project).stderr == f"note: {problem}\n"
    write_files(project / "team", {"flows/cycles.yaml": "steps: [{ask: thinker, next: [{end: never, exit: 1}]}]\n"})
    assert console("roles", "validate", "--roles", "team", folder=project).stderr == f"warning: {problem}\n"
    (project / "team/flows/cycles.yaml").unlink()
    (project / "codex-multi-role.yaml").write_text("flow: cycles\n")
    assert console("roles", "validate", "--roles", "team", folder=project).stderr == f"warning: {problem}\n"
    (project / "codex-multi-role.yaml").write_text("flow: own\n")
    assert console("roles", "validate", "--roles", "team", folder=project).stderr == ""
    write_files(project / "team", {"flows/own.yaml": "steps: [{ask: thinker, next: [{end: never, exit: 1}]}]\n"})
    own = console("flows", "validate", "own", "--roles", "team", folder=project)
    assert "no role can finish: the flow own reaches" in own.stderr
    finishing = CATALOG.replace("prompt_text: Think.", "prompt_text: Think.\n    behaviors: {can_finish: true}")
    (project / "team/catalog.yaml").write_text(finishing)
    assert console("flows", "validate", "own", "cycles", "--roles", "team", folder=project).returncode == 0


def test_run_reports_mistakes_of_catalog_and_flow_at_once(tmp_path: Path) -> None:
    project = write_team(tmp_path)
    write_files(project / "team", {name: MISTAKES[name] for name in ("catalog.yaml", "extra.yaml", "flows/own.yaml")})
    done = console("run", "--flow", "own", "--goal", "g", "--roles", "team", folder=project)
    assert done.returncode == 2
    files = [line.split(":")[1].strip() for line in done.stderr.splitlines() if line.startswith("error")]
    assert sorted(set(files)) == ["team/catalog.yaml", "team/extra.yaml", "team/flows/own.yaml"]


REPLACED = "{ask: thinker, prompt: Now., prompt_replaces: true, next: [{end: never, exit: 1}]}"
UNSENT = (
    "catalog.yaml: role thinker: its instructions are never sent: prompt_replaces in own/thinker; delete it where they"
)


def test_instructions_that_no_step_sends_are_a_warning(tmp_path: Path) -> None:
    """Each command that loads the team prints it once, also if other flows call the one that replaces them."""
    project = write_team(tmp_path)
    write_files(
        project / "team", {"flows/own.yaml": f"steps: [{REPLACED}]\n", "flows/outer.yaml": "steps: [{call: own}]\n"}
    )
    ways = ["roles validate", "roles show thinker", "flows validate own outer"]
    for way in [*ways, "run --flow outer --goal g --playbook auto --dry-run"]:
        done = console(*way.split(), "--roles", "team", folder=project)
        assert (done.returncode, done.stderr.count(f"warning: team/{UNSENT}")) == (0, 1), done.stderr
    assert UNSENT not in console("roles", "show", "doer", "--roles", "team", folder=project).stderr
    write_files(project / "team", {"flows/own.yaml": f"steps: [{REPLACED}, {{id: too, ask: thinker}}]\n"})
    for way in ways:
        assert UNSENT not in console(*way.split(), "--roles", "team", folder=project).stderr


@pytest.mark.real
def test_run_warns_once_of_instructions_that_no_step_sends(tmp_path: Path) -> None:
    step = {"ask": "one", "prompt": "Now.", "prompt_replaces": True}
    flow = {"steps": [step, {"id": "ok", "review": "Good?"}]}
    team = with_flow(TeamFolder(tmp_path, {"one": {}}, {"one": [say()]}), flow)
    assert team.run(flow="own").exit_code == 4
    assert warnings(team.events) == [
        f"{team.folder}/roles/catalog.yaml: role one: its instructions are never sent: prompt_replaces in own/one; "
        "delete it where they are to be sent"
    ]
    team.resume(yes=True)
    assert warnings(team.events) == []
