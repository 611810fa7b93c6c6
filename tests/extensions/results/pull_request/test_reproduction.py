"""The commands of "How to reproduce" run as printed in another checkout, and do what the run did.

Costs: the printed commands run in shells, in other checkouts.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.awkward_repositories import git
from tests.support.console import Completed, completed, console, environment
from tests.support.long_run import by_default
from tests.support.teams import WRITER, Record, TeamFolder, read, say, with_flow
from tests.support.workspaces import commit_all, write_files, write_program

pytestmark = pytest.mark.usefixtures("scripted_codex")

BLOCK = re.compile(r"^### How to reproduce\n\n(`{3,})sh\n(.*?)^\1$\n\n(.*)", re.MULTILINE | re.DOTALL)
STUB = """#!/bin/sh
{ echo "$#"; printf '%s\\0' "$@"; } >> "$CALLS"
"""
"""Notes what the shell made of a command, which this process then runs."""
STEPS: list[Record] = [{"id": "go", "ask": "writer"}]
OWN: Record = {"goal": {"default": "the flow's own"}, "inputs": {"what": {"default": "x"}}, "steps": STEPS}
GATE: Record = {"steps": [{"id": "go", "ask": "writer", "next": [{"end": "missed", "exit": 1}]}]}
REVIEW: Record = {"steps": [*STEPS, {"id": "ok", "review": "Good?"}]}
WRITING: Record = {
    "steps": [*STEPS, {"id": "write", "check": "write_file", "with": {"path": "made.txt", "content": "made"}}]
}
OTHER = "other roles"
UNCOMMITTED = "# the run started with uncommitted changes to 1 file"


def command_lines(body: str) -> str:
    """The block of commands."""
    found = BLOCK.search(body)
    assert found, body
    return found[2]


def give_lines(lines: str, checkout: Path) -> list[tuple[list[str], Completed]]:
    """Let ``bash`` execute the lines at the top of the checkout; what is ours runs in this process."""
    programs = checkout.parent / "programs"
    write_program(programs / "codex-multi-role", STUB)
    calls = checkout.parent / "calls"
    calls.write_bytes(b"")
    path = f"{programs}:{environment()['PATH']}"
    done = completed(["bash", "-e", "-c", lines], checkout, environment(PATH=path, CALLS=str(calls)))
    assert done.returncode == 0, done.stderr
    return [(words, console(*words, folder=checkout)) for words in noted(calls.read_text())]


def noted(text: str) -> list[list[str]]:
    found = []
    while text:
        count, _, rest = text.partition("\n")
        *words, text = rest.split("\0", int(count))
        found.append(words)
    return found


def clone_with_run(top: Path, run_folder: Path, place: Path) -> Path:
    """Another checkout of the repository ``top``, into which the folder of a run was copied."""
    git(top, "clone", "--quiet", str(top), str(place))
    shutil.copytree(run_folder, place / "runs" / run_folder.name, symlinks=True)
    return place


def what_it_did(run_folder: Path) -> dict[str, Any]:
    """How the run ended, what it was given, and the definitions that it used."""
    record = read(run_folder / "run.json")
    told = {name: record[name] for name in ("goal", "flow", "inputs", "exit_code", "outcome", "playbook", "files")}
    kept = (run_folder / "catalog" / record["catalog_file"]).parent
    return told | {str(path.relative_to(kept)): path.read_bytes() for path in kept.rglob("*.yaml")}


def assert_reproduces(run_folder: Path, top: Path) -> str:
    """The lines that the pull request prints do again what the run did; returns them."""
    described = console("pr", run_folder.name, "--runs-dir", str(run_folder.parent), folder=top)
    assert described.returncode == 0, described.stderr
    body = described.stdout
    lines = command_lines(body)
    other = clone_with_run(top, run_folder, top.parent / "another machine" / "checkout")
    assert str(top.parent) not in body
    given = give_lines(lines, other)
    (_, again), *rest = given
    [repeated] = [path.parent for path in other.glob("*/2*/run.json") if path.parent.name != run_folder.name]
    assert [words[0] for words, _ in given] == ["run", "show", "diff", "export"], lines
    assert again.returncode == read(run_folder / "run.json")["exit_code"], lines + again.stderr
    assert what_it_did(repeated) == what_it_did(run_folder), lines
    assert [done.returncode for _, done in rest] == [0, 0, 0], [done.stderr for _, done in rest]
    assert console("diff", repeated.name, "--runs-dir", repeated.parent.name, folder=other).stdout == rest[1][1].stdout
    assert git(other, "rev-parse", "--verify", "NAME")
    return lines


@dataclass(frozen=True)
class Case:
    """A run in a project, given from its folder ``below``. ``then``: the command that makes the run meant instead."""

    arguments: tuple[str, ...] = ()
    flow: Record = field(default_factory=lambda: OWN)
    prepare: Callable[[Path], object] = lambda top: None
    uncommitted: Callable[[Path], object] = lambda top: None
    below: str = "."
    roles: str = "roles"
    playbook: str = "playbook.yaml"
    then: tuple[str, ...] = ()
    shows: str = ""
    comment: str = ""


def move(source: str, target: str) -> Callable[[Path], object]:
    def moved(top: Path) -> object:
        (top / target).parent.mkdir(parents=True, exist_ok=True)
        return shutil.move(top / source, top / target)

    return moved


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda top: write_files(top, {name: text})


def edit_role(top: Path) -> None:
    catalog = top / "roles/catalog.yaml"
    catalog.write_text(catalog.read_text().replace("Do it.", "Do it well."))


def set_in_playbook(**more: object) -> Callable[[Path], object]:
    def changed(top: Path) -> object:
        file = top / "playbook.yaml"
        return file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | more))

    return changed


EVERY_KIND = (
    *("--cycles", "2", "--repair-attempts", "0", "--model", "some model", "-c", 'x="a b"', "-c", "y=1"),
    *("--max-turns", "9", "--max-tokens", "900000", "--max-seconds", "500", "--max-processes", "2", "--yes"),
    *("--no-run-tests", "--no-test-sandbox", "--test-seconds", "20.5", "--pytest-cmd", "python -m pytest"),
    *("--workspace-copy", "*.env", "--workspace-copy", "it's", "--workspace-setup", "echo 'a b'"),
)
PRICES = "date: 2026-01-01\ncurrency: USD\nsource: us\nmodels: {m: {input: 1, cached_input: 1, output: 1}}\n"
CASES = {
    "plain": Case(shows="run --goal 'reach it'"),
    "branch": Case(("--branch", "mine")),
    "rerun of a worktree": Case(("--worktree",), then=("rerun", "earlier", "--goal", "another")),
    "fork": Case(then=("fork", "earlier", "--from", "go")),
    "roles of a folder": Case(roles="team/a b", prepare=move("roles", "team/a b"), shows="--roles 'team/a b'"),
    "catalog file": Case(
        roles="roles/own.yaml", prepare=move("roles/catalog.yaml", "roles/own.yaml"), shows="--roles roles/own.yaml"
    ),
    "roles and playbook elsewhere": Case(
        roles=f"../{OTHER}",
        playbook=f"../{OTHER}/else.yaml",
        prepare=lambda top: [
            moved(top) for moved in (move("roles", f"../{OTHER}"), move("playbook.yaml", f"../{OTHER}/else.yaml"))
        ],
        shows="--roles runs/the-run/",
    ),
    "roles that changed": Case(uncommitted=edit_role, shows="--roles runs/the-run/", comment=UNCOMMITTED),
    "flow that is new": Case(
        flow={},
        uncommitted=write("roles/flows/own.yaml", yaml.safe_dump({"name": "own", **OWN})),
        shows="--roles runs/the-run/",
        comment=UNCOMMITTED,
    ),
    "inputs": Case(
        ("-i", 'what=it\'s a\n$b `c` "d"'),
    ),
    "goal of many lines": Case(
        ("--goal", "-- it's\n#this\n\n`x` $HOME"),
    ),
    "flow's own goal": Case(("--goal",), shows="own'"),
    "playbook by name": Case(playbook="mine", prepare=move("playbook.yaml", "roles/playbooks/mine.yaml")),
    "playbook with cycles": Case(("--cycles", "3"), prepare=set_in_playbook(cycles=1, goal="its own")),
    "every kind of option": Case(EVERY_KIND, flow=REVIEW),
    "started below": Case(
        below="sub",
        prepare=write("sub/a.txt", "x"),
        roles="../roles",
        playbook="../playbook.yaml",
        shows="--workspace sub",
    ),
    "empty folder": Case(("--workspace", "new/a b"), uncommitted=lambda top: (top / "new/a b").mkdir(parents=True)),
    "settings": Case(
        ("--cycles", "3", "--no-run-tests"),
        prepare=write("codex-multi-role.yaml", "cycles: 1\nrun-tests: true\nruns_dir: elsewhere\nworkspace: roles\n"),
        below="roles",
        roles=".",
        playbook="../playbook.yaml",
    ),
    "prices": Case(("--prices", "prices of us.yaml"), prepare=write("prices of us.yaml", PRICES)),
    "tests of its own": Case(("--pytest-cmd", "{top}/bin/python -m pytest"), shows="--pytest-cmd 'bin/python -m"),
    "recorded": Case(("--record", "../record.ndjson")),
    "uncommitted": Case(uncommitted=write("new.txt", "x"), comment=UNCOMMITTED),
    "automatic answers": Case(flow=WRITING, playbook="auto", shows="--playbook auto"),
    "goal not reached": Case(flow=GATE),
    "limit": Case(("--max-turns", "1"), flow={"steps": [*STEPS, {"id": "more", "ask": "writer"}]}),
    "asked": Case(flow=REVIEW, comment="# the run asked a person"),
}


def made_project(folder: Path, case: Case) -> Path:
    """A repository with a team and a playbook in it."""
    file = {"path": "made.txt", "content": "made\n"}
    team = TeamFolder(folder / "first", {"writer": WRITER}, {"writer": [say(files=[file])] * 3})
    if case.flow:
        with_flow(team, case.flow)
    (team.folder / ".gitignore").write_text("/runs/\n")
    case.prepare(team.folder)
    commit_all(team.folder)
    case.uncommitted(team.folder)
    return team.folder


DAILY = ["rerun of a worktree", "roles and playbook elsewhere", "every kind of option", "settings"]
REPLAY = Case(
    ("--record", "../a record"),
    then=("run", "--replay", "../a record", "--worktree", "--no-run-tests"),
    shows="--replay runs/the-run/",
)


@pytest.mark.parametrize("name", by_default(DAILY, CASES))
def test_commands_of_every_kind_of_run_work(name: str, tmp_path: Path) -> None:
    """Each kind has words or places of its own in the commands that are printed."""
    assert_case_reproduces(CASES[name], tmp_path)


@pytest.mark.usefixtures("real_codex")
def test_commands_of_a_replay_work(tmp_path: Path) -> None:
    assert_case_reproduces(REPLAY, tmp_path)


def assert_case_reproduces(case: Case, folder: Path) -> None:
    top = made_project(folder, case)
    goal = () if "--goal" in case.arguments else ("--goal", "reach it")
    given = [word.replace("{top}", str(top)) for word in case.arguments if case.arguments != ("--goal",)]
    team = ("--roles", case.roles, "--playbook", case.playbook, "--flow", "own", "--runs-dir", str(top / "runs"))
    tests = () if {"--run-tests", "--no-run-tests"} & {*given} else ("--no-run-tests",)
    done = console("run", *goal, *team, *tests, "--run-id", "the-run", *given, folder=top / case.below)
    assert (top / "runs/the-run").is_dir(), done.stderr
    if case.then:
        (top / "runs/the-run").rename(top / "runs/earlier")
        done = console(*case.then, "--run-id", "the-run", folder=top)
        assert done.returncode == 0, done.stderr
    lines = assert_reproduces(top / "runs/the-run", top)
    assert case.shows in lines, lines
    assert case.comment in lines, lines
    assert case.comment or "\n# " not in lines, lines


def test_run_outside_of_a_repository_works_again_beside_its_folder(tmp_path: Path) -> None:
    """Its commands need no commit, and there is no branch to export."""
    top = made_project(tmp_path, CASES["plain"])
    (place := tmp_path / "elsewhere").mkdir()
    team = ("--roles", "roles", "--playbook", "playbook.yaml", "--flow", "own", "--no-run-tests")
    done = console("run", *team, "--run-id", "the-run", "--workspace", str(place), folder=top)
    assert done.returncode == 0, done.stderr
    lines = command_lines(console("pr", folder=top).stdout)
    shutil.copytree(top / "runs/the-run", (other := tmp_path / "other") / "runs/the-run", symlinks=True)
    given = give_lines(lines, other)
    assert [(words[0], done.returncode) for words, done in given] == [("run", 0), ("show", 0), ("diff", 0)], lines
    assert (other / "made.txt").read_text() == "made\n"
    assert lines.startswith("# the run did not start from a commit")


def test_command_with_a_secret_is_not_printed_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "of-the-shop-12345")
    top = made_project(tmp_path, CASES["plain"])
    team = ("--roles", "roles", "--playbook", "playbook.yaml", "--flow", "own", "--no-run-tests")
    console("run", "--goal", "use of-the-shop-12345", *team, folder=top)
    lines = command_lines(console("pr", folder=top).stdout)
    assert "# the command of the run cannot be shown here" in lines
    assert "codex-multi-role run" not in lines


@pytest.mark.usefixtures("real_codex")
def test_lines_run_in_a_shell_as_printed(tmp_path: Path) -> None:
    """Nothing takes the place of the command, or of Codex."""
    top = made_project(tmp_path, CASES["plain"])
    team = ("--roles", "roles", "--playbook", "playbook.yaml", "--flow", "own", "--no-run-tests")
    console("run", "--run-id", "the-run", *team, folder=top)
    lines = command_lines(console("pr", folder=top).stdout)
    other = clone_with_run(top, top / "runs/the-run", tmp_path / "other")
    path = f"{Path(sys.executable).parent}:{environment()['PATH']}"
    done = completed(["bash", "-e", "-c", lines], other, environment(PATH=path))
    assert done.returncode == 0, done.stderr
    assert (other / "made.txt").read_text() == "made\n"
