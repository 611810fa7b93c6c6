"""Honest bundles are verified wherever they are; what cannot be checked, and what is not allowed, is reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import run
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays import replay_tests
from codex_multi_role.extensions.replays.verifying import Verification, verify_bundle
from codex_multi_role.run_options import RunOptions, RunReport
from tests.support.bundles import Parts, bundled, shop_team
from tests.support.teams import WRITER, TeamFolder, fan, say, with_flow

pytestmark = pytest.mark.real

OWN_FILE = {"json": {"summary": "did it", "files": [{"path": "{{ unit }}.txt", "content": "{{ unit }}"}]}}


def lines(result: Verification, status: str) -> list[str]:
    return [line.text for line in result.lines if line.status == status]


@pytest.mark.long
def test_tests_are_red_before_and_green_after(tmp_path: Path) -> None:
    bundle = bundled(shop_team(tmp_path), run_tests=True)
    result = verify_bundle(bundle, {})
    assert lines(result, "differs") == []
    before = "the last tests on the first state: failed, 2 failed, test_shop::test_three, test_shop::test_two"
    assert {"2 test results, the last: passed, 2 passed", before} <= {*lines(result, "same")}
    tests = Parts.of(bundle, tmp_path / "parts").observed["tests"]
    assert [(each["status"], each["passed"], each["failed"]) for each in tests] == [("failed", 1, 1), ("passed", 2, 0)]


@pytest.mark.long
def test_turns_at_once_are_compared_as_a_whole(tmp_path: Path) -> None:
    """Four items in copies of the workspace, merged in whichever order they end."""
    team = TeamFolder(tmp_path, {"solver": WRITER, "last": {}}, {"solver": [OWN_FILE] * 4, "last": [say()]})
    with_flow(team, {"steps": [fan([1, 2, 3, 4], concurrency=4, isolate="worktree"), {"ask": "last"}]})
    bundle = bundled(team)
    result = verify_bundle(bundle, {})
    assert lines(result, "differs") == []
    assert {"5 turns", "the files at the end"} <= {*lines(result, "same")}
    assert any("because turns worked at once" in each for each in lines(result, "not checked"))
    parts = Parts.of(bundle, tmp_path / "parts")
    parts.observed["changes"][-1]["after"] = parts.observed["first"]
    parts.observed["turns"].pop()
    found = lines(verify_bundle(parts.write(tmp_path / "forged.bundle"), {}), "differs")
    assert "turns of last last.1 completed: claimed 0, now 1" in found
    assert any(each.startswith("the files at the end: solve.1.") for each in found)


@pytest.mark.long
def test_other_programs_are_reported_as_not_checked(shop_bundle: Path, tmp_path: Path) -> None:
    """The bundle is packed as the forged ones are, which is not what refuses them."""
    parts = Parts.of(shop_bundle, tmp_path / "parts")
    parts.claims["made_with"] |= {"machine": "Plan9 sparc", "python": "3.99.0"}
    result = verify_bundle(parts.write(tmp_path / "other.bundle"), {})
    assert lines(result, "differs") == []
    assert any(each.startswith("machine Plan9 sparc, because machine is ") for each in lines(result, "not checked"))
    assert any(each.startswith("python 3.99.0, because python is ") for each in lines(result, "not checked"))


@pytest.mark.usefixtures("scripted_codex")
def test_machine_that_cuts_the_replay_short_makes_no_difference(
    shop_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says nothing of the bundle: it cannot be run here."""

    def cut_short(options: RunOptions) -> RunReport:
        return replace(run(options), outcome="storage_failed", exit_code=3, reason="no space left")

    monkeypatch.setattr(replay_tests, "run", cut_short)
    with pytest.raises(UsageError, match="cannot be run on this machine: no space left"):
        verify_bundle(shop_bundle, {})


@pytest.mark.usefixtures("scripted_codex")
def test_what_is_neither_played_nor_compared_is_listed(shop_bundle: Path, tmp_path: Path) -> None:
    """A copied turn may be honest: one that was killed after its answer is asked again under the same key."""
    parts = Parts.of(shop_bundle, tmp_path / "parts")
    parts.recording.insert(-1, {**parts.exchanges[2], "turn": "copied", "note": "x"})
    parts.recording.insert(2, {**parts.exchanges[0], "note": "x"})
    parts.recording[0]["praise"] = parts.ended["praise"] = "perfect"
    parts.more["team/praise.txt"] = b"perfect"
    ran: list[str] = []
    result = verify_bundle(parts.write(tmp_path / "more.bundle"), {}, on_command=ran.append)
    assert lines(result, "differs") == []
    listed = lines(result, "not checked")
    assert "lines 2, 6 of the recording, because they were asked for again" in listed
    assert "team/praise.txt, because the run does not use it" in listed
    [fields] = [each for each in listed if each.startswith("fields of the recording")]
    assert {"ended.praise", "exchange.note", "recording.praise", "recording.roles"} <= {
        *fields.split(": ")[1].split(", ")
    }
    assert ran == []


def test_commands_are_named_before_any_runs(shop_bundle: Path, tmp_path: Path) -> None:
    parts = Parts.of(shop_bundle, tmp_path / "parts")
    step = "- check: command\n  id: own\n  with: {argv: [sh, -c, exit 1]}\n"
    parts.team["team/flows/own.yaml"] = parts.team["team/flows/own.yaml"].replace("steps:\n", f"steps:\n{step}")
    call = {"type": "function_call", "name": "shell", "arguments": '{"command": "rm -r ."}'}
    parts.exchanges[0]["items"].append(call)
    parts.claims["pytest_cmd"] = "pytest -x"

    class Named(Exception):
        pass

    def stop_at_last(command: str) -> None:
        ran.append(command)
        if len(ran) == 3:
            raise Named

    ran: list[str] = []
    with pytest.raises(Named):
        verify_bundle(parts.write(tmp_path / "commands.bundle"), {}, on_command=stop_at_last)
    assert ran == [
        "tests: pytest -x, for at most 300 s",
        "step own: sh -c 'exit 1'",
        'role writer: {"command": "rm -r ."}',
    ]


RIGHTS: dict[str, dict[str, Any]] = {
    "mcp_servers": {"mcp_servers": {"shell": {"command": "sh"}}},
    "codex_config": {"codex_config": {"sandbox_workspace_write.network_access": True}},
    "sandbox: danger-full-access": {"sandbox": "danger-full-access"},
    "auto_approve": {"auto_approve": {"commands": True}},
}


def test_team_with_rights_of_its_own_needs_trust(shop_bundle: Path, tmp_path: Path) -> None:
    """It is refused before anything of it runs."""
    team = TeamFolder(tmp_path / "other", {}, {})
    team.roles = {"writer": {**WRITER, **{k: v for keys in RIGHTS.values() for k, v in keys.items()}}, "judge": {}}
    team.write_catalog()
    parts = Parts.of(shop_bundle, tmp_path / "parts")
    parts.team["team/catalog.yaml"] = (team.folder / "roles/catalog.yaml").read_text()
    step = "- check: command\n  id: own\n  with: {argv: [sh], sandbox: false}\n"
    parts.team["team/flows/own.yaml"] = parts.team["team/flows/own.yaml"].replace("steps:\n", f"steps:\n{step}")
    folder = parts.with_file(parts.observed["first"], ".codex/config.toml", "")
    parts.replace_state(parts.observed["first"], folder)
    with pytest.raises(UsageError) as refused:
        verify_bundle(parts.write(tmp_path / "rights.bundle"), {})
    for name in RIGHTS:
        assert f"role writer has {name}" in str(refused.value)
    assert "step own runs without the sandbox" in str(refused.value)
    assert "the workspace has .codex" in str(refused.value)
    assert "--trust-team" in refused.value.hint


@pytest.mark.long
def test_run_that_changes_no_files_is_verified(tmp_path: Path) -> None:
    team = with_flow(TeamFolder(tmp_path, {"one": {}}, {"one": [say()]}), {"steps": [{"ask": "one"}]})
    (team.workspace / "read.txt").write_text("Read me.\n")
    result = verify_bundle(bundled(team), {})
    assert lines(result, "differs") == []
    assert "0 changes of the workspace, 0 files" in lines(result, "same")


@pytest.mark.long
def test_trusted_team_is_run(tmp_path: Path) -> None:
    team = shop_team(tmp_path)
    team.roles["judge"] = RIGHTS["auto_approve"]
    team.write_catalog()
    bundle = bundled(team)
    with pytest.raises(UsageError, match="role judge has auto_approve"):
        verify_bundle(bundle, {})
    assert verify_bundle(bundle, {}, trust_team=True).exit_code == 0


@pytest.mark.long
def test_copies_one_after_the_other_are_compared_in_order(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"solver": WRITER}, {"solver": [OWN_FILE] * 2})
    bundle = bundled(with_flow(team, {"steps": [fan([1, 2], isolate="worktree")]}))
    result = verify_bundle(bundle, {})
    assert lines(result, "differs") == []
    parts = Parts.of(bundle, tmp_path / "parts")
    assert [change["unit"] for change in parts.observed["in_copies"]] == ["solve.1.0", "solve.1.1"]
    parts.observed["in_copies"][1]["after"] = parts.observed["first"]
    found = lines(verify_bundle(parts.write(tmp_path / "forged.bundle"), {}), "differs")
    assert found == ["turn solver 2, solve.1.1: solve.1.1.txt"]
