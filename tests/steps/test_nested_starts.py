"""A subfolder of the workspace is where the next run may start: what would steer that run is off limits as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.host.processes import Family
from codex_multi_role.lifecycle.process_guard import PART
from tests.support.processes import wait_for
from tests.support.steering import CATALOG, EVIL, SETTINGS, reasons, state, submitted, team
from tests.support.teams import TeamFolder, say
from tests.support.tools import shell
from tests.support.workspaces import write_files

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

SUB_SETTINGS, SUB_CATALOG, SUB_SEARCH = f"a/sub/{SETTINGS}", f"a/sub/{CATALOG}", "a/sub/roles/search.yaml"
PLANT = (
    f"mkdir -p a/sub/roles/x; echo '{EVIL}' > {SUB_CATALOG}; echo 'test_sandbox: false' > {SUB_SETTINGS}; "
    f"echo x > {SUB_SEARCH}; echo x > a/sub/roles/x/main.yml"
)


@pytest.mark.usefixtures("real_codex")
def test_existing_catalog_and_settings_are_read_only(tmp_path: Path) -> None:
    tries = f"echo x > {SUB_SETTINGS}; echo x > {SUB_CATALOG}; echo x > a/sub/roles/role.yaml; mv a b; touch a/sub/f"
    made = team(tmp_path, {"steps": [*shell(tries)["steps"][:1], submitted("a/sub/roles/new.md")]}, kind=TeamFolder)
    write_files(made.workspace, dict.fromkeys((SUB_SETTINGS, SUB_CATALOG, "a/sub/roles/role.yaml"), "mine\n"))
    before = state(made.workspace)
    report = made.run()
    assert state(made.workspace) == {**before, "a/sub/f": b""}
    assert reasons(report.folder) == {"a/sub/roles/new.md": "unsafe path"}


@pytest.mark.usefixtures("real_codex")
def test_files_left_by_a_killed_run_are_removed(tmp_path: Path) -> None:
    """By the next session, if the guard was killed as well; what existed before stays."""
    made = team(tmp_path, shell(f"{PLANT}; touch begun; sleep 60"), kind=TeamFolder)
    (made.workspace / ".gitignore").write_text("a/\n")  # what is ignored is in no snapshot
    (made.workspace / "own/roles").mkdir(parents=True)
    (made.workspace / "own" / CATALOG).write_text("mine\n")
    process = made.start()
    wait_for(made.workspace / "begun")
    Family.of_run((made.runs / "latest").resolve(), PART).kill()
    process.kill()
    process.communicate(timeout=20)
    made.write_plays(writer=[say()])
    assert made.resume(playbook=str(made.playbook)).outcome == "cycles_used_up"
    assert set(state(made.workspace)) == {".gitignore", "a/sub/roles/x/main.yml", f"own/{CATALOG}"}
