"""A subfolder of the workspace is where the next run may start: what would steer that run is off limits as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.host.processes import Family
from codex_multi_role.lifecycle.process_guard import PART
from tests.support.processes import wait_for
from tests.support.steering import CATALOG, EVIL, SETTINGS, reasons, state, submitted, team
from tests.support.teams import Record, TeamFolder, read, say, with_flow
from tests.support.tools import shell

pytestmark = pytest.mark.real

SUB_SETTINGS, SUB_CATALOG, SUB_SEARCH = f"a/sub/{SETTINGS}", f"a/sub/{CATALOG}", "a/sub/roles/search.yaml"
PLANT = (
    f"mkdir -p a/sub/roles/x; echo '{EVIL}' > {SUB_CATALOG}; echo 'test_sandbox: false' > {SUB_SETTINGS}; "
    f"echo x > {SUB_SEARCH}; echo x > a/sub/roles/x/main.yml"
)


def test_submitted_files_that_would_steer_it_are_refused(tmp_path: Path) -> None:
    made = team(
        tmp_path, submitted(SUB_SETTINGS, SUB_CATALOG, SUB_SEARCH, "a/Roles/catalog.yml", "a/roles/x/tasks.yml")
    )
    report = made.run()
    refused = dict.fromkeys((SUB_SETTINGS, SUB_CATALOG, SUB_SEARCH, "a/Roles/catalog.yml"), "unsafe path")
    assert reasons(report.folder) == {**refused, "a/roles/x/tasks.yml": None}


def test_existing_catalog_and_settings_are_read_only(tmp_path: Path) -> None:
    tries = f"echo x > {SUB_SETTINGS}; echo x > {SUB_CATALOG}; echo x > a/sub/roles/role.yaml; mv a b; touch a/sub/f"
    made = team(tmp_path, {"steps": [*shell(tries)["steps"][:1], submitted("a/sub/roles/new.md")]}, kind=TeamFolder)
    for path in (SUB_SETTINGS, SUB_CATALOG, "a/sub/roles/role.yaml"):
        (made.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (made.workspace / path).write_text("mine\n")
    before = state(made.workspace)
    report = made.run()
    assert state(made.workspace) == {**before, "a/sub/f": b""}
    assert reasons(report.folder) == {"a/sub/roles/new.md": "unsafe path"}


@pytest.mark.parametrize("by_link", [False, True])
def test_what_a_command_creates_is_removed_after_the_turn(tmp_path: Path, by_link: bool) -> None:
    script = "mkdir -p a/sub a/x; cd a; echo x > x/catalog.yaml; ln -s ../x sub/roles" if by_link else PLANT
    made = team(tmp_path, shell(script), kind=TeamFolder)
    report = made.run()
    assert set(state(made.workspace)) == ({"a/x/catalog.yaml"} if by_link else {"a/sub/roles/x/main.yml"})
    restored = ["a/sub/roles"] if by_link else [SUB_SETTINGS, SUB_CATALOG, SUB_SEARCH]
    assert read(report.folder / "writer/turn_001/turn.json")["protected_restored"] == restored


def test_what_a_check_creates_is_removed_after_it(tmp_path: Path) -> None:
    steps: list[Record] = [{"id": "run", "check": "command", "with": {"argv": ["/bin/sh", "-c", PLANT]}}]
    made = with_flow(team(tmp_path, kind=TeamFolder), {"steps": steps})
    report = made.run(flow="own")
    assert set(state(made.workspace)) == {"a/sub/roles/x/main.yml"}
    told = read(report.folder / "checks/run.1/result.json")["protected_restored"]
    assert told == [SUB_SETTINGS, SUB_CATALOG, SUB_SEARCH]


@pytest.mark.long(
    "steps/test_steering.py::test_copy_brings_none_of_it_back",
    "steps/test_nested_starts.py::test_what_a_command_creates_is_removed_after_the_turn",
)
def test_copy_brings_none_of_it_back(tmp_path: Path) -> None:
    made = team(tmp_path, shell(PLANT), kind=TeamFolder)
    made = with_flow(made, {"steps": [{"id": "go", "ask": "writer", "isolate": "worktree"}]})
    made.run(flow="own")
    assert set(state(made.workspace)) == {"a/sub/roles/x/main.yml"}


@pytest.mark.parametrize("guarded", [pytest.param(True, marks=pytest.mark.long), False])
def test_files_left_by_a_killed_run_are_removed(tmp_path: Path, guarded: bool) -> None:
    """By its guard, or by the next session if the guard was killed as well; what existed before stays."""
    made = team(tmp_path, shell(f"{PLANT}; touch begun; sleep 60"), kind=TeamFolder)
    (made.workspace / ".gitignore").write_text("a/\n")  # what is ignored is in no snapshot
    (made.workspace / "own/roles").mkdir(parents=True)
    (made.workspace / "own" / CATALOG).write_text("mine\n")
    process = made.start()
    wait_for(made.workspace / "begun")
    folder = (made.runs / "latest").resolve()
    if not guarded:
        Family.of_run(folder, PART).kill()
    process.kill()
    process.communicate(timeout=20)
    if guarded:
        wait_for(folder / "set_aside" / SUB_SEARCH)
    made.plays["writer"] = [say()]
    made.write_plays()
    assert made.resume(playbook=str(made.playbook)).outcome == "cycles_used_up"
    assert set(state(made.workspace)) == {".gitignore", "a/sub/roles/x/main.yml", f"own/{CATALOG}"}
