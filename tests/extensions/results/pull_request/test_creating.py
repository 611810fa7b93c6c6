"""A pull request is created once, from a pushed branch, and a failure reports what was done before it."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from codex_multi_role.errors import PublishingFailed, UsageError
from codex_multi_role.extensions.results.pull_request.creating import Request, create_pull_request
from codex_multi_role.extensions.results.pull_request.description import Description
from codex_multi_role.extensions.results.run_history import history_of
from tests.support.console import console
from tests.support.git_hosts import ScriptedHost, add_remote, scripted_host
from tests.support.histories import History
from tests.support.workspaces import git, write_program

pytestmark = pytest.mark.real

DESCRIPTION = Description("Add two words", "The run succeeded.\n\nIt's done; $(touch owned).\n")
PULL = "https://git.example.com/team/shop/pull/1"
MERGE = "https://git.example.com/team/shop/merge_requests/1"
BRANCH = "codex-multi-role/first"


@pytest.fixture
def history(tmp_path: Path) -> History:
    """A run that started from the only commit of ``remote``, on the branch ``main``."""
    made = History(tmp_path, {"a.txt": "one\n"}, {"a.txt": "one\n"})
    add_remote(made.workspace, tmp_path / "remote.git")
    made.turn("writer", {"a.txt": "one\ntwo\n"})
    return made


def installed(folder: Path, patch: pytest.MonkeyPatch, *programs: str) -> ScriptedHost:
    host = scripted_host(folder / "host", *programs)
    patch.setenv("PATH", host.path)
    return host


def create(history: History, **request: object) -> list[str]:
    """The lines of both outputs."""
    lines: list[str] = []
    made = Request(**request)  # type: ignore[arg-type]  # its own fields
    printed = create_pull_request(history_of(history.run), DESCRIPTION, made, lines.append)
    return [*lines, printed]


def test_pull_request_is_of_the_pushed_branch(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = git(history.workspace, "status", "--porcelain=v2", "--branch")
    host = installed(tmp_path, monkeypatch, "gh")
    assert create(history, is_draft=True) == [
        *(f"branch {BRANCH}: 1 commit", f"pushed {BRANCH} to origin", "created the pull request as a draft", PULL)
    ]
    listing, creating = host.calls("gh")
    assert listing == ["pr", "list", "--state", "open", "--json", "url", "--head", BRANCH]
    body = history.run.path / "pull_request.md"
    assert creating[:2] == ["pr", "create"]
    assert creating[2:] == [
        *("--head", BRANCH, "--base", "main", "--draft", "--title", "Add two words", "--body-file", str(body))
    ]
    assert body.read_text() == DESCRIPTION.body
    monkeypatch.undo()
    assert git(tmp_path / "remote.git", "show", f"{BRANCH}:a.txt") == "one\ntwo\n"
    assert git(tmp_path / "remote.git", "log", "--format=%an", f"main..{BRANCH}") == "writer\n"
    assert git(history.workspace, "status", "--porcelain=v2", "--branch") == before


def test_second_call_adds_new_turns_to_the_open_one(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = installed(tmp_path, monkeypatch, "gh")
    create(history)
    history.turn("writer", {"a.txt": "three\n"})
    was_open = "the pull request was open already; its text stays as it is"
    assert create(history)[-2:] == [was_open, PULL]
    assert create(history) == [f"branch {BRANCH}: 2 commits", was_open, PULL], "nothing is left to push"
    assert [call[1] for call in host.calls("gh")] == ["list", "create", "list", "list"]
    assert git(tmp_path / "remote.git", "show", f"{BRANCH}:a.txt") == "three\n"


def test_gitlab_gets_a_merge_request_through_ssh(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which program it is comes from the remote's server, also if the other one is installed; git uses the user's."""
    host = installed(tmp_path, monkeypatch, "gh", "glab")
    ssh = write_program(tmp_path / "ssh", '#!/bin/sh\nshift $(($# - 1))\nexec sh -c "$1"\n')
    monkeypatch.setenv("GIT_SSH", str(ssh))
    git(history.workspace, "remote", "add", "lab", f"git@gitlab.example.com:{tmp_path}/remote.git")
    (host.folder / "bin/git-upload-pack").symlink_to(git(tmp_path, "--exec-path").strip() + "/git-upload-pack")
    (host.folder / "bin/git-receive-pack").symlink_to(git(tmp_path, "--exec-path").strip() + "/git-receive-pack")
    assert create(history, remote="lab", branch="agents/one")[-1] == MERGE
    assert host.calls("gh") == []
    listing, creating = host.calls("glab")
    assert listing == ["mr", "list", "--output", "json", "--source-branch", "agents/one"]
    assert creating == [
        *("mr", "create", "--yes", "--source-branch", "agents/one", "--target-branch", "main"),
        *("--title", "Add two words", "--description", DESCRIPTION.body),
    ]


def test_without_programs_it_fails_with_commands_that_work(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = installed(tmp_path, monkeypatch)
    with pytest.raises(PublishingFailed, match="nothing was created, because gh or glab is not installed") as failed:
        create(history, branch="agents/it's")
    assert failed.value.exit_code == 1
    _, exporting, *others = failed.value.hint.splitlines()
    monkeypatch.undo()
    assert exporting.startswith("codex-multi-role export first ")
    assert git(history.workspace, "branch", "--format=%(refname:short)") == "main\n"
    done = console(*shlex.split(exporting)[1:], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for program in ("gh", "glab"):
        host.install(program)
    script = "\n".join(others).replace("# or: ", "")
    subprocess.run(["sh", "-e", "-c", script], cwd=tmp_path, env={"PATH": host.path}, check=True)
    assert git(tmp_path / "remote.git", "show", "agents/it's:a.txt") == "one\ntwo\n"
    assert host.calls("gh")[0][-2:] == ["--body-file", str(history.run.path / "pull_request.md")]
    assert host.calls("glab")[0][-1] == DESCRIPTION.body.removesuffix("\n")
    assert not list(tmp_path.rglob("owned"))


def test_branch_of_the_own_worktree_stays_as_the_run_left_it(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is checked out there; the remote's branch gets its name."""
    installed(tmp_path, monkeypatch, "gh")
    git(history.workspace, "worktree", "add", "-q", "-b", "roman", str(tmp_path / "tree"))
    history.run.write_record({**history.run.record(), "options": {"branch": "roman"}})
    assert create(history)[:2] == [f"branch {BRANCH}: 1 commit", "pushed roman to origin"]
    assert git(history.workspace, "rev-parse", "roman") == git(history.workspace, "rev-parse", "main")
    assert git(tmp_path / "remote.git", "show", "roman:a.txt") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"remote": "nowhere"}, "cannot read nowhere: fatal: 'nowhere' does not appear to be a git repos"),
        ({"branch": "theirs"}, "the branch theirs of origin exists, and is not an earlier export"),
        ({"remote": "--upload-pack=touch owned"}, "cannot read --upload-pack"),
    ],
)
def test_what_cannot_work_is_refused_before_the_push(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: dict[str, str], message: str
) -> None:
    git(history.workspace, "push", "-q", "origin", "main:theirs")
    host = installed(tmp_path, monkeypatch, "gh")
    with pytest.raises(UsageError, match=message):
        create(history, **request_)
    assert "create" not in [call[1] for call in host.calls("gh")]
    assert not list(tmp_path.rglob("owned"))
    refs = git(tmp_path / "remote.git", "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
    commit = git(history.workspace, "rev-parse", "main")
    assert refs == f"refs/heads/main {commit}refs/heads/theirs {commit}"


def test_base_is_where_the_run_started_if_it_is_there(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = installed(tmp_path, monkeypatch, "gh")
    recorded = history.run.record()
    history.run.write_record({**recorded, "repository": {**recorded["repository"], "branch": "develop"}})
    create(history, branch="one")
    git(history.workspace, "push", "-q", "origin", "main:develop")
    create(history, branch="two")
    first, second = [call for call in host.calls("gh") if call[1] == "create"]
    assert "--base" not in first, "gh takes the default branch"
    assert second[second.index("--base") + 1] == "develop"


def test_failure_reports_progress_and_a_second_call_completes(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = installed(tmp_path, monkeypatch, "gh")
    hook = write_program(tmp_path / "remote.git/hooks/pre-receive", "#!/bin/sh\necho 'the linter fails' >&2\nexit 1\n")
    with pytest.raises(PublishingFailed, match="was exported, but not pushed: error: failed to push") as refused:
        create(history)
    assert f"`git push -- origin refs/heads/{BRANCH}:refs/heads/{BRANCH}` in {history.workspace}" in refused.value.hint
    hook.unlink()
    host.refuse("gh", "gh: To use GitHub CLI, set the GH_TOKEN variable.\nmore\n")
    with pytest.raises(PublishingFailed, match="was pushed, but gh created no pull request: gh: To use GitHub CLI"):
        create(history)
    host.accept("gh")
    assert create(history)[-1] == PULL


def test_program_that_knows_the_host_is_used(history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the server tells nothing here. If none knows it, nothing is done."""
    host = installed(tmp_path, monkeypatch, "gh", "glab")
    for program in ("gh", "glab"):
        (host.folder / "bin" / program).write_text("#!/bin/sh\necho 'not a known host' >&2\nexit 1\n")
    with pytest.raises(PublishingFailed, match="nothing was done, because gh: not a known host; glab: not a known"):
        create(history)
    assert BRANCH not in git(history.workspace, "branch", "--list", "--all")
    host.install("glab")
    assert create(history)[-1] == MERGE


def test_programs_of_the_workspace_are_not_run(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = installed(tmp_path, monkeypatch)
    (history.workspace / "bin").mkdir()
    fake = write_program(history.workspace / "bin/gh", f"#!/bin/sh\ntouch {tmp_path}/owned\n")
    monkeypatch.setenv("PATH", f"{fake.parent}:{host.path}")
    with pytest.raises(PublishingFailed, match="nothing was created"):
        create(history)
    assert not (tmp_path / "owned").exists()
