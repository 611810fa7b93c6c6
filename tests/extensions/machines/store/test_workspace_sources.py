"""A workspace travels as git: from a repository, or in a bundle with the history of one."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from pydantic import ValidationError

import codex_multi_role.workspace.cloning as cloning
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.extensions.machines.store.workspace_sources import (
    WorkspaceSource,
    bundle_workspace,
    make_workspace,
)
from codex_multi_role.playbook.loopback import LoopbackHandler, LoopbackServer
from codex_multi_role.workspace.repository import Repository
from tests.support.workspaces import Program, commit_all, git, write_files, write_program

pytestmark = pytest.mark.real

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"{tmp_path}/store")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a subfolder, two commits, a tag and a branch."""
    folder = tmp_path / "project"
    write_files(folder, {"sub/a.txt": "first\n"})
    commit_all(folder)
    git(folder, "tag", "v1")
    (folder / "sub/a.txt").write_text("second\n")
    commit_all(folder)
    return folder


def test_bundle_has_history_and_counts_uncommitted_files(store: Store, project: Path, tmp_path: Path) -> None:
    write_files(project, {"sub/a.txt": "not committed\n", "new.txt": "neither\n"})
    git(project, "remote", "add", "origin", "https://example.invalid/project.git")
    bundled = bundle_workspace(store, project / "sub")
    assert bundled.uncommitted == 2
    source = WorkspaceSource.model_validate_json(bundled.source.model_dump_json())
    made = make_workspace(source, store, tmp_path / "made")
    assert made == tmp_path / "made/sub"
    assert (made / "a.txt").read_text() == "second\n"
    found = Repository.around(made)
    assert found is not None
    there = Repository(project, project / ".git")
    assert (found.checked_out(), found.branch()) == (there.checked_out(), there.branch())
    assert git(made, "remote", "get-url", "origin").strip() == "https://example.invalid/project.git"
    assert len(git(made, "log", "--oneline").splitlines()) == 2


def test_folder_without_repository_is_bundled_as_one_commit(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    write_files(folder, {"run.sh": Program("#!/bin/sh\n"), "large.bin": bytes(range(256)) * 20_000})
    bundled = bundle_workspace(store, folder)
    made = make_workspace(bundled.source, store, tmp_path / "made")
    assert bundled.uncommitted == 0
    assert (made / "large.bin").read_bytes() == (folder / "large.bin").read_bytes()
    assert (made / "run.sh").stat().st_mode & 0o100
    assert git(made, "rev-list", "--count", "HEAD").strip() == "1"
    assert not (folder / ".git").exists()


def test_detached_head_is_bundled(store: Store, project: Path, tmp_path: Path) -> None:
    git(project, "checkout", "--quiet", "v1")
    made = make_workspace(bundle_workspace(store, project).source, store, tmp_path / "made")
    assert (made / "sub/a.txt").read_text() == "first\n"


@pytest.mark.parametrize("ref", ["v1", "commit", "short"])
def test_repository_is_cloned_at_its_ref(ref: str, project: Path, tmp_path: Path) -> None:
    commit = git(project, "rev-parse", "v1").strip()
    named = {"commit": commit, "short": commit[:10]}.get(ref, ref)
    source = WorkspaceSource(repository=project.as_uri(), ref=named, below="sub")
    assert (make_workspace(source, None, tmp_path / "made") / "a.txt").read_text() == "first\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (WorkspaceSource(repository="file:///not/there"), r"file:///not/there was not found"),
        (WorkspaceSource(repository="PROJECT", ref="nowhere"), r"project has no branch, tag or commit nowhere"),
        (WorkspaceSource(repository="PROJECT", ref="0" * 40), r"project has no branch, tag or commit 0000"),
        (WorkspaceSource(repository="PROJECT", below="no/folder"), r"project has no folder no/folder"),
        (WorkspaceSource(repository="https://127.0.0.1:1/x.git"), r"https://127.0.0.1:1/x.git cannot be cloned"),
        (WorkspaceSource(bundle=f"bundles/{'0' * 64}.json.zlib"), r"none is given"),
    ],
)
def test_unusable_source_is_a_usage_error(source: WorkspaceSource, message: str, project: Path, tmp_path: Path) -> None:
    if source.repository == "PROJECT":
        source = source.model_copy(update={"repository": str(project)})
    with pytest.raises(UsageError, match=message) as caught:
        make_workspace(source, None, tmp_path / "made/here")
    assert caught.value.hint
    assert not list(tmp_path.glob("made/*"))


@pytest.mark.parametrize(
    "address", [f"https://{SECRET}@github.com/x/y", "https://me:hunter22@host/x", "ssh://me:hunter22@host/x"]
)
def test_credentials_in_address_are_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(ValidationError, match="credential helper") as caught:
        WorkspaceSource(repository=address)
    assert not any(secret in str(caught.value.errors(include_input=False)) for secret in (SECRET, "hunter22"))


@pytest.mark.parametrize("wrong", [{"ref": "--upload-pack=x"}, {"below": "../x"}, {"below": "/x"}, {"bundle": "x"}])
def test_source_that_leads_elsewhere_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        WorkspaceSource(repository="https://host/x", **wrong)


class RequiresLogin(LoopbackHandler):
    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        self.answer(401, b"", {"WWW-Authenticate": 'Basic realm="x"'})


def test_server_that_requires_login_is_reported_without_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked"
    ask = write_program(tmp_path / "ask.sh", f"#!/bin/sh\ntouch {asked}\n")
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.setenv(name, str(ask))
    with LoopbackServer("git", RequiresLogin) as server:
        source = WorkspaceSource(repository=f"{server.address}/x.git")
        with pytest.raises(UsageError, match=r"access to http://127.0.0.1:\d+/x.git was denied") as caught:
            make_workspace(source, None, tmp_path / "made")
    assert "without a password" in caught.value.hint
    assert not asked.exists()


def test_shallow_clone_is_not_bundled(store: Store, project: Path, tmp_path: Path) -> None:
    git(project, "clone", "--quiet", "--depth=1", project.as_uri(), str(tmp_path / "shallow"))
    with pytest.raises(UsageError, match="is a shallow clone") as caught:
        bundle_workspace(store, tmp_path / "shallow")
    assert "--unshallow" in caught.value.hint


def test_clone_from_silent_server_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloning, "REMOTE_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        source = WorkspaceSource(repository=f"http://127.0.0.1:{server.getsockname()[1]}/x.git")
        with pytest.raises(UsageError, match="cannot be cloned: git clone took longer than"):
            make_workspace(source, None, tmp_path / "made")
    assert not list(tmp_path.glob("**/made*"))
