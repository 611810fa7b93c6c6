"""``pr``, given as a user gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import console
from tests.support.git_hosts import add_remote, scripted_host
from tests.support.histories import History
from tests.support.long_run import by_default


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History(tmp_path, {"a.txt": "one\n"}, {"a.txt": "one\n"})
    add_remote(made.workspace, tmp_path / "remote.git")
    made.turn("writer", {"a.txt": "two\n"})
    made.ended()
    return made


def test_text_is_printed_and_nothing_changes(history: History, tmp_path: Path) -> None:
    done = console("pr", folder=tmp_path)
    title, empty, body = done.stdout.split("\n", 2)
    assert (done.returncode, title, empty) == (0, "Goal not reached: Run first of the flow own", "")
    assert "### Files\n\n```text\n a.txt | 2 +-\n" in body
    assert not (history.run.path / "pull_request.md").exists()


@pytest.mark.real
@pytest.mark.sample("pr")
@pytest.mark.usefixtures("history")
def test_output_is_the_address(tmp_path: Path) -> None:
    host = scripted_host(tmp_path / "host", "gh")
    done = console("pr", "first", "--create", folder=tmp_path, variables={"PATH": host.path})
    assert (done.returncode, done.stdout) == (0, "https://git.example.com/team/shop/pull/1\n")
    assert done.stderr.splitlines()[-1] == "created the pull request"
    host.refuse("gh", "no\n")
    done = console("pr", "--create", "--branch", "other", folder=tmp_path, variables={"PATH": host.path})
    assert done.returncode == 1
    assert "was pushed, but gh created no pull request: no\n" in done.stderr


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("option", by_default(["--draft"], ["--draft", "--base=main", "--branch=x", "--remote=origin"]))
def test_options_of_creation_need_it(tmp_path: Path, option: str) -> None:
    done = console("pr", option, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "these options need --create" in done.stderr
