"""A resumed run takes a flow that was corrected since, if it fits what is recorded and allows no more than before."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.host.atomic import write_text
from codex_multi_role.lifecycle.corrected_flows import are_edited
from codex_multi_role.lifecycle.definitions import load_definitions
from codex_multi_role.lifecycle.run_record import RunRecord
from tests.support.console import console
from tests.support.teams import Record, TeamFolder, read, say, warnings, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

WRITES: Record = {"behaviors": {"apply_files": True}}
FAILING: Record = {"ask": "two", "prompt": "Add {{ 1 // inputs.none }}."}
CORRECTED: Record = {"ask": "two", "prompt": "Add to {{ roles.one.summary }}."}
COMMAND: Record = {"check": "command", "with": {"argv": ["true"], "json": False}}
OUTSIDE: Record = {"check": "command", "with": {"argv": ["true"], "json": False, "sandbox": False}}
FILE = "roles/flows/own.yaml"


def failed(folder: Path, *before: Record, roles: dict[str, Record] | None = None, **more: object) -> TeamFolder:
    """A team whose run has failed in its second step, because of the flow."""
    plays = [say(f"answer {number}") for number in range(9)]
    team = TeamFolder(folder, {"one": {}, "two": {}, **(roles or {})}, {"one": plays, "two": plays})
    with_flow(team, {"inputs": {"none": 0}, "steps": [{"ask": "one"}, *before, FAILING], **more})
    assert team.run(flow="own").exit_code not in (0, 1)
    return team


def test_corrected_flow_is_taken_and_stays(tmp_path: Path) -> None:
    team = failed(tmp_path)
    with_flow(team, {"steps": [{"ask": "one"}, CORRECTED, {"review": "Ship it?", "id": "ok"}]})
    assert team.resume().exit_code == 4
    assert team.turns() == [("two", 1, "completed")]
    [told] = team.of_type("flows_reloaded")
    assert (told["flows"], told["catalog_file"]) == (["own"], "reloaded_001/catalog.yaml")
    assert read(team.runs / "latest/run.json")["catalog_file"] == told["catalog_file"]
    (tmp_path / FILE).unlink()
    assert team.resume(yes=True).exit_code == 0
    assert (team.turns(), team.of_type("flows_reloaded")) == ([], [])
    kept = team.runs / "latest/catalog"
    assert sorted(path.parent.parent.name for path in kept.rglob("own.yaml")) == ["catalog", "reloaded_001"]


def test_command_says_that_it_uses_the_corrected_flow(tmp_path: Path) -> None:
    team = failed(tmp_path)
    with_flow(team, {"steps": [{"ask": "one"}, CORRECTED]})
    done = console("resume", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the edited flow own is used from here on" in done.stderr


@pytest.mark.parametrize("text", ["# nothing else\n", ""])
def test_equal_flow_does_not_count_as_correction(tmp_path: Path, text: str) -> None:
    team = failed(tmp_path)
    path = tmp_path / FILE
    path.write_text(text + path.read_text())
    assert team.resume().exit_code not in (0, 1)
    assert (warnings(team.events), team.of_type("flows_reloaded")) == ([], [])


def test_correction_of_what_is_recorded_is_refused_with_the_way_on(tmp_path: Path) -> None:
    team = failed(tmp_path)
    with_flow(team, {"steps": [{"ask": "one", "prompt": "Do it in verse."}, CORRECTED]})
    assert team.resume().exit_code not in (0, 1)
    assert (team.turns(), team.of_type("flows_reloaded")) == ([], [])
    [warning] = warnings(team.events)
    assert warning.startswith("the run continues with its own copy of the flow own: the flow own cannot be changed: ")
    assert "one.1 depends on it" in warning
    done = console(*shlex.split(warning.split("`")[1])[1:], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "in verse" in (team.runs / "latest/one/turn_001/prompt.txt").read_text()


def test_flow_with_a_mistake_is_named_and_not_taken(tmp_path: Path) -> None:
    team = failed(tmp_path)
    (tmp_path / FILE).write_text("steps:\n- ask: one\n- ask: nobody\n")
    assert team.resume().exit_code not in (0, 1)
    [warning] = warnings(team.events)
    assert "own.yaml:3" in warning
    assert "nobody" in warning


@pytest.mark.parametrize(
    ("steps", "more", "words"),
    [
        ([OUTSIDE], {}, "step command runs without the sandbox"),
        ([COMMAND], {}, "it changes the workspace"),
        ([], {"finally": [{**OUTSIDE, "id": "stop"}]}, "step stop runs without the sandbox"),
        ([{"ask": "writer"}], {}, "it asks writer, who may do more than the roles asked so far"),
        ([], {"protect": ["b.py"]}, "it no longer protects a.py"),
    ],
)
def test_correction_never_widens_rights(tmp_path: Path, steps: list[Record], more: Record, words: str) -> None:
    """Neither as `resume` finds it, nor if it is named."""
    team = failed(tmp_path, roles={"writer": WRITES}, protect=["a.py"])
    with_flow(team, {"steps": [{"ask": "one"}, CORRECTED, *steps], "protect": ["a.py"], **more})
    assert team.resume().exit_code not in (0, 1)
    [warning] = warnings(team.events)
    assert "cannot be changed so that it allows more: " in warning
    assert words in warning
    assert f"--from STEP --roles {tmp_path / 'roles'}" in warning
    with pytest.raises(UsageError, match=words):
        team.resume(roles=tmp_path / "roles")
    assert team.turns() == []


def test_correction_may_use_the_rights_that_the_run_has(tmp_path: Path) -> None:
    """A command is corrected, and another role asked that may do no more."""
    wrong = {"check": "command", "with": {"argv": ["echo", "{{ roles.one }}"], "json": False}}
    plays = [say()] * 3
    team = TeamFolder(tmp_path, {"one": WRITES, "two": {}}, {"one": plays, "two": plays})
    with_flow(team, {"inputs": {"none": 0}, "steps": [{"ask": "one"}, wrong]})
    assert team.run(flow="own").exit_code not in (0, 1)
    with_flow(team, {"steps": [{"ask": "one"}, COMMAND, {"ask": "two"}]})
    assert team.resume().exit_code == 0
    assert team.turns() == [("two", 1, "completed")]


@pytest.mark.parametrize("is_written", [False, True])
def test_kill_while_the_copy_is_replaced_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    team = failed(tmp_path)
    with_flow(team, {"steps": [{"ask": "one"}, CORRECTED]})
    reloaded = RunRecord.reloaded

    def killed(record: RunRecord, *given: object) -> None:
        if is_written:
            reloaded(record, *given)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunRecord, "reloaded", killed)
        with pytest.raises(KeyboardInterrupt):
            team.resume()
    assert team.resume().exit_code == 0
    assert team.turns() == [("two", 1, "completed")]


def test_flow_that_a_killed_turn_may_have_written_is_not_taken(tmp_path: Path) -> None:
    """Such a file is removed after the turn that wrote it, unless a kill came before."""
    team = failed(tmp_path)
    flows = load_definitions(team.options(flow="own")).flows
    record = {"roles_source": str(tmp_path / "roles/catalog.yaml"), "workspace": str(tmp_path)}
    copy = tmp_path / "copy.yaml"
    copy.write_text("steps: [{ask: one}]")
    kept = {"own": flows["own"].model_copy(update={"source": copy})}
    assert are_edited(kept, record)
    assert not are_edited(kept, {**record, "steering_absent": ["roles/flows"]})
    assert are_edited(kept, {**record, "steering_absent": ["flows"]})


@pytest.mark.parametrize("source", ["gone/catalog.yaml", None])
def test_flow_beside_no_known_catalog_is_not_looked_for(tmp_path: Path, source: str | None) -> None:
    team = failed(tmp_path)
    with_flow(team, {"steps": [{"ask": "one"}, CORRECTED]})
    path = (team.runs / "latest").resolve() / "run.json"
    record = read(path)
    record.pop("roles_source")
    write_text(path, json.dumps({**record, **({"roles_source": str(tmp_path / source)} if source else {})}))
    assert team.resume().exit_code not in (0, 1)
    assert warnings(team.events) == []
