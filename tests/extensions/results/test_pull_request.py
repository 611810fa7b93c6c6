"""`pr`, given as a user gives it; which program is asked, and what it answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.extensions.results.pull_request.git_hosts import GIT_HOSTS, GITHUB, GITLAB, hosts_of, last_address
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


@pytest.mark.parametrize(
    ("remote", "programs"),
    [
        ("git@github.com:o/r.git", ["gh"]),
        ("https://someone:secret@github.example.com/o/r", ["gh"]),
        ("ssh://git@gitlab.example.com:2222/o/r.git", ["glab"]),
        ("https://gitlab.com/github/r.git", ["glab"]),
        ("https://git.example.com/github/gitlab.git", ["gh", "glab"]),
        ("/srv/github/r.git", ["gh", "glab"]),
        ("file:///srv/gitlab/r.git", ["gh", "glab"]),
        ("../gitlab", ["gh", "glab"]),
    ],
)
def test_program_is_that_of_the_server_or_any(remote: str, programs: list[str]) -> None:
    assert [host.program for host in hosts_of(remote)] == programs


def test_addresses_are_found_in_what_is_printed() -> None:
    assert GITHUB.first_address('[{"url": "https://a/1"}, {"url": "https://a/2"}]') == "https://a/1"
    assert GITLAB.first_address('[{"iid": 1, "web_url": "https://b/1"}]') == "https://b/1"
    assert [host.first_address(printed) for host in GIT_HOSTS for printed in ("[]", "")] == [""] * 4
    for printed in ("none", "{}", "[1]", '{"message": "401"}', '[{"id": 1}]'):
        assert GITHUB.first_address(printed) is None
    assert last_address("Creating (see https://a/b)\n\n!1 It (branch)\n https://a/1\n") == "https://a/1"
    assert last_address("nothing") == ""
