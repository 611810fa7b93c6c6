"""No model writes what steers a run: neither by what it submits, nor by a command, nor by a test, nor in a copy.

Costs: a run for each place that steers, most of them in the sandbox of the real binary.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role.host.settings_files import PYPROJECT
from codex_multi_role.lifecycle.process_guard import end_work_of
from tests.support.processes import wait_for
from tests.support.steering import CATALOG, EVIL, SETTINGS, InOneFolder, reasons, state, submitted, team
from tests.support.teams import Record, TeamFolder, read, say, with_flow
from tests.support.tools import command, shell
from tests.support.workspaces import Link, write_files

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

SEARCH, PRICES = "roles/search.yaml", "roles/prices.yaml"
"""It is read even without a catalog beside it."""
TABLE = "[tool.codex-multi-role]\ntest-sandbox = false\n"
PROJECT = "[project]\nname = 'shop'\n"
OF_USER = "mine/codex-multi-role/config.yaml"
PLANT = f"mkdir -p roles; echo '{EVIL}' > {CATALOG}; echo 'test_sandbox: false' > {SETTINGS}"
PLANT += "; mkdir -p roles/x; echo x > roles/x/main.yml"
PLANT += f"; echo 'version: 1' > {SEARCH}; echo 'models: {{}}' > {PRICES}"
REPOSITORY = "mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; touch config a.txt"


def test_what_a_role_submits_over_what_steers_a_run_is_refused(tmp_path: Path) -> None:
    paths = ["roles/reader.yaml", CATALOG, "Roles/x.md", "roles/flows/cycles.yaml", "roles/prompts/p.md", "link/a.yaml"]
    paths += [SETTINGS, f"sub/{SETTINGS}", "playbook.yaml", "./CODEX-multi-role.yaml"]
    made = team(tmp_path, submitted(*paths, "sub/roles/x/reader.yaml"))
    (tmp_path / "link").symlink_to("roles")
    before = state(tmp_path)
    report = made.run()
    assert reasons(report.folder) == {**dict.fromkeys(paths, "unsafe path"), "sub/roles/x/reader.yaml": None}
    assert state(tmp_path) == {**before, "sub/roles/x/reader.yaml": EVIL.encode()}
    assert not made.of_type("roles_reloaded")


@pytest.mark.usefixtures("real_codex")
def test_command_cannot_change_or_move_steering_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steering files are the catalog, role files, prompts, the playbook, and settings: also those of the user.

    The workspace is above the folder that the run is started in.
    """
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "mine"))
    files = {SETTINGS: "cycles: 2\n", PYPROJECT: PROJECT + TABLE, OF_USER: "cycles: 2\n", ".git": "", "sub/a.txt": ""}
    paths = (CATALOG, "roles/reader.yaml", "roles/prompts/p.md", SETTINGS, "playbook.yaml", PYPROJECT, OF_USER)
    tries = [f"echo 'yes: true' >> {path}" for path in paths]
    tries += ["mv roles r2", "rm -r roles", "ln -sf /dev/null roles/catalog.yaml", f"mv {SETTINGS} gone", "true"]
    made = team(tmp_path, shell("; ".join(tries)))
    write_files(tmp_path, files)
    before = state(tmp_path)
    monkeypatch.chdir(tmp_path / "sub")
    made.run()
    assert state(tmp_path) == before
    assert not made.of_type("protected_restored")


@pytest.mark.usefixtures("real_codex")
def test_nested_catalog_cannot_be_moved_with_its_folder(tmp_path: Path) -> None:
    """The catalog is in a subfolder of the workspace. Other files in that subfolder stay writable."""
    made = team(tmp_path, shell("mv config c2; mv config/team config/t2; echo x > config/fine.txt; true"))
    (tmp_path / "config/team").mkdir(parents=True)
    (tmp_path / CATALOG).rename(tmp_path / "config/team/catalog.yaml")
    before = state(tmp_path)
    made.run(roles=tmp_path / "config/team")
    assert state(tmp_path) == {**before, "config/fine.txt": b"x\n"}


PLACES = (
    *("roles/lint.yaml", "a/roles/lint.yml", "a/roles/.lint.yaml", "A/Roles/LINT.YAML", "a/roles/planner.yml"),
    *("a/roles/flows/cycles.yaml", "a/roles/playbooks/auto.yaml", "a/roles/skills/evil/SKILL.md"),
    *("a/roles/starters/own/catalog.yaml", "a/roles/roles/lint.yaml", "src/plugin/roles/analyst.yaml"),
    *("src/plugin/roles/new.yaml", "conf/lint.yaml", "conf/flows/own.yaml", "linked/roles/new.yaml", "later/lint.yaml"),
    *("around.yaml", "around/roles/flows/new.yaml", SETTINGS, f"a/b/{SETTINGS}"),
)
"""Whoever reads it, and wherever the next run starts. ``linked/roles`` leads to ``conf``, ``around/roles`` to the top,
and a file of ``a/links/roles`` to ``later/lint.yaml``, which does not exist yet."""
OF_OTHER_TOOLS = (
    "a/roles/web/tasks/main.yml",
    "a/roles/web/flows/x.yaml",
    "a/roles/models.py",
    "conf/x.md",
    "a/x.yaml",
)


@pytest.mark.usefixtures("real_codex")
@pytest.mark.parametrize("by_command", [False, True])
def test_no_place_that_next_run_reads_is_written(tmp_path: Path, by_command: bool) -> None:
    """What other tools keep in a folder ``roles`` stays writable."""
    every = (*PLACES, *OF_OTHER_TOOLS)
    script = "; ".join(f"mkdir -p $(dirname {path}); echo '{EVIL}' > {path}" for path in every)
    made = team(tmp_path, shell(f"{script}; true") if by_command else submitted(*every), kind=TeamFolder)
    mine = ("src/plugin/roles/analyst.yaml", "conf/mine.yaml", "a/links/roles/mine.yaml", "around/mine.yaml")
    write_files(made.workspace, dict.fromkeys(mine, "mine\n"))
    links = {"linked/roles": "../conf", "around/roles": "..", "a/links/roles/lint.yaml": "../../../later/lint.yaml"}
    write_files(made.workspace, {path: Link(target) for path, target in links.items()})
    before = state(made.workspace)
    report = made.run()
    if not by_command:
        refused = {**dict.fromkeys(PLACES, "unsafe path"), **dict.fromkeys(OF_OTHER_TOOLS)}
        assert reasons(report.folder) == refused
    assert {path: text for path, text in state(made.workspace).items() if path not in OF_OTHER_TOOLS} == before
    assert {*OF_OTHER_TOOLS} <= {*state(made.workspace)}
    assert (made.workspace / "linked/roles").readlink() == Path("../conf")


CREATED: dict[str, list[str]] = {
    f"{PLANT}; mkdir -p mine/codex-multi-role; echo 'yes: true' > {OF_USER}": [
        *(SETTINGS, OF_USER, CATALOG, PRICES, SEARCH),
    ],
    "cd a/sub; echo x > roles/catalog.yaml; echo x > codex-multi-role.yaml; echo x > roles/search.yaml": [
        *(f"a/sub/{SETTINGS}", f"a/sub/{CATALOG}", f"a/sub/{SEARCH}"),
    ],
    "mkdir b; cd b; mkdir x y; echo x > x/catalog.yaml; ln -s ../x y/roles": ["b/y/roles"],
    f"ln -s ../later.yaml {CATALOG}; ln -s later.yaml {SETTINGS}": [SETTINGS, CATALOG],
    REPOSITORY: ["HEAD"],
    f"echo '# more' >> {PYPROJECT}; printf '{TABLE}' >> {PYPROJECT}; printf '{TABLE}' > a/{PYPROJECT}": [
        *(f"a/{PYPROJECT}", PYPROJECT),
    ],
}
"""By a command of a turn: the paths that steer a run, or make a repository. What else it wrote stays."""


@pytest.mark.usefixtures("real_codex")
def test_what_would_steer_the_next_run_is_removed_after_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "workspace/mine"))
    made = team(tmp_path, *map(shell, CREATED), kind=TeamFolder)
    files = {"roles/x/tasks.yml": "- ansible: yes\n", "a/sub/roles/x/main.yml": "", PYPROJECT: PROJECT}
    write_files(made.workspace, files)
    report = made.run(cycles=len(CREATED))
    folders = [report.folder / f"writer/turn_{number:03d}" for number in range(1, len(CREATED) + 1)]
    assert [read(each / "turn.json")["protected_restored"] for each in folders] == [*CREATED.values()]
    left = state(made.workspace)
    others = ("roles/x/tasks.yml", "roles/x/main.yml", "a/sub/roles/x/main.yml", "b/x/catalog.yaml", "config", "a.txt")
    assert set(left) == {*others, PYPROJECT}
    assert left[PYPROJECT] == f"{PROJECT}# more\n".encode()
    for folder in (folders[0], folders[-1]):
        assert "test" in (folder / "protected.patch").read_text()


def test_settings_that_a_role_submits_in_pyproject_are_refused(tmp_path: Path) -> None:
    entries = {PYPROJECT: PROJECT + TABLE, "link.toml": TABLE, "other.toml": TABLE, f"a/{PYPROJECT}": PROJECT}
    made = team(tmp_path, say(files=[{"path": path, "content": text} for path, text in entries.items()]))
    (tmp_path / PYPROJECT).write_text(PROJECT)
    (tmp_path / "link.toml").symlink_to(PYPROJECT)
    report = made.run()
    unsafe = {PYPROJECT: "unsafe path", "link.toml": "unsafe path"}
    assert reasons(report.folder) == {**unsafe, "other.toml": None, f"a/{PYPROJECT}": None}
    assert (tmp_path / PYPROJECT).read_text() == PROJECT


@pytest.mark.parametrize("exists", [False, True])
def test_test_cannot_write_it_either(tmp_path: Path, exists: bool) -> None:
    code = "import os, pathlib\n\ndef test_it():\n"
    code += f"    os.makedirs('roles', exist_ok=True)\n    pathlib.Path({SETTINGS!r}).write_text('pytest_cmd: sh')\n"
    code += f"    pathlib.Path({CATALOG!r}).write_text('evil')\n"
    made = team(
        tmp_path,
        say(files=[{"path": "test_it.py", "content": code}]),
        kind=InOneFolder if exists else TeamFolder,
    )
    if exists:
        (tmp_path / SETTINGS).write_text("cycles: 2\n")
    before = state(made.workspace)
    report = made.run(run_tests=True)
    assert {path: text for path, text in state(made.workspace).items() if "test_it" not in path} == before
    result = read(report.folder / "tests/001/result.json")
    if exists:
        assert (result["failed"], result.get("protected_restored")) == (1, None)
    else:
        assert (result["passed"], result["protected_restored"]) == (1, [SETTINGS, CATALOG])


def test_check_cannot_write_it_either(tmp_path: Path) -> None:
    steps: list[Record] = [{"id": "run", "check": "command", "with": {"argv": ["/bin/sh", "-c", PLANT]}}]
    made = with_flow(team(tmp_path), {"steps": steps})
    before = state(tmp_path)
    report = made.run(flow="own")
    assert state(tmp_path) == before
    assert read(report.folder / "checks/run.1/result.json")["protected_restored"] == [SETTINGS]


@pytest.mark.usefixtures("real_codex")
def test_copy_brings_none_of_it_back(tmp_path: Path) -> None:
    """Nor a repository."""
    script = (
        f"echo evil > roles/reader.yaml; rm {CATALOG}; ln -s evil roles/link.yaml; echo x > {SETTINGS}; "
        f"echo x > a.txt; mkdir sub; cd sub; {REPOSITORY}; touch objects/x refs/x"
    )
    play: Record = {"steps": [command(script), submitted("roles/b.yaml", "b.txt")]}
    made = with_flow(team(tmp_path, play), {"steps": [{"id": "go", "ask": "writer", "isolate": "worktree"}]})
    before = state(tmp_path)
    report = made.run(flow="own")
    assert reasons(report.folder) == {"roles/b.yaml": "unsafe path", "b.txt": None}
    [merged] = made.of_type("copy_merged")
    conflicts = {entry["path"]: entry["kind"] for entry in merged["conflicts"]}
    assert conflicts == {CATALOG: "off limits", "sub/refs/x": "off limits"}  # the others were new, and removed
    left = {path: text for path, text in state(tmp_path).items() if not path.startswith("sub/")}
    assert left == {**before, "a.txt": b"x\n", "b.txt": EVIL.encode()}
    assert not {"HEAD", "objects", "refs"} <= {path.name for path in (tmp_path / "sub").iterdir()}


@pytest.mark.usefixtures("real_codex")
def test_catalog_that_is_reached_by_a_link_keeps_its_link(tmp_path: Path) -> None:
    made = team(
        tmp_path, shell("rm roles; mkdir roles; echo evil > roles/catalog.yaml; echo evil > shared/reader.yaml; true")
    )
    (tmp_path / "roles").rename(tmp_path / "shared")
    (tmp_path / "roles").symlink_to("shared")
    before = state(tmp_path)
    made.run()
    assert (tmp_path / "roles").readlink() == Path("shared")
    assert state(tmp_path) == before


@pytest.mark.usefixtures("real_codex")
def test_catalog_in_workspace_root_leaves_other_files_writable(tmp_path: Path) -> None:
    tries = (
        "echo evil > catalog.yaml; echo evil > planner.yaml; mkdir flows; echo evil > flows/cycles.yaml; echo x > a.txt"
    )
    made = team(tmp_path, {"steps": [command(tries), submitted("search.yaml", "flows/own.yaml", "compose.yaml")]})
    (tmp_path / CATALOG).rename(tmp_path / "catalog.yaml")
    before = state(tmp_path)
    report = made.run(roles=tmp_path)
    assert reasons(report.folder) == {
        "search.yaml": "unsafe path",
        "flows/own.yaml": "unsafe path",
        "compose.yaml": "unsafe path",
    }
    assert state(tmp_path) == {**before, "a.txt": b"x\n"}


def test_steering_files_left_by_killed_run_are_set_aside(tmp_path: Path) -> None:
    """Another run may start before this one is resumed."""
    made = team(tmp_path, shell(f"{PLANT}; touch begun; sleep 60"), kind=TeamFolder)
    process = made.start()
    wait_for(made.workspace / "begun")
    process.kill()
    process.communicate(timeout=20)
    kept = (made.runs / "latest").resolve() / "set_aside"
    wait_for(kept / SETTINGS)
    wait_for(kept / CATALOG)
    assert not (made.workspace / SETTINGS).exists()
    assert not (made.workspace / CATALOG).exists()
    assert (made.workspace / "roles/x/main.yml").exists()
    made.write_plays(writer=[say()])
    assert made.resume(playbook=str(made.playbook)).outcome == "cycles_used_up"


def test_link_left_by_killed_run_is_set_aside_without_target(tmp_path: Path) -> None:
    """The target of the link stays in the workspace."""
    workspace, run = tmp_path / "workspace", tmp_path / "run"
    write_files(workspace, {"team/catalog.yaml": EVIL, "roles": Link("team")})
    run.mkdir()
    recorded = {"workspace": str(workspace), "steering_absent": [CATALOG, "a[[]1].yaml"]}
    (run / "run.json").write_text(json.dumps(recorded))
    end_work_of(str(run))
    assert [path.name for path in workspace.iterdir()] == ["team"]
    assert (run / "set_aside/roles").is_symlink()
    assert (workspace / "team/catalog.yaml").read_text() == EVIL


def test_pyproject_left_by_killed_run_loses_its_settings(tmp_path: Path) -> None:
    workspace, run = tmp_path / "workspace", tmp_path / "run"
    workspace.mkdir()
    run.mkdir()
    (workspace / PYPROJECT).write_text(PROJECT + TABLE)
    recorded = {"workspace": str(workspace), "steering_absent": [f"**/{PYPROJECT}"]}
    (run / "run.json").write_text(json.dumps(recorded))
    end_work_of(str(run))
    assert (workspace / PYPROJECT).read_text() == PROJECT
    assert (run / "set_aside" / PYPROJECT).read_text() == PROJECT + TABLE


REPOSITORY = "mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; touch config a.txt"
