"""Create a pull request for a run: export its branch, push it, ask the git host. A second call creates no other."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from codex_multi_role.errors import PublishingFailed, UsageError
from codex_multi_role.history import RunHistory
from codex_multi_role.history.commit_texts import BEFORE
from codex_multi_role.history.exporting import Exported, export, start_of
from codex_multi_role.host.atomic import write_text
from codex_multi_role.host.programs import exclude_from_path, program_path
from codex_multi_role.integrations.pull_request.description import Description
from codex_multi_role.integrations.pull_request.git_hosts import GitHost, Proposal, hosts_of, last_address
from codex_multi_role.presentation.wording import PROGRAM, one_line, plural
from codex_multi_role.workspace.commands import CommandResult, run_command

REMOTE_SECONDS = 120.0
PUSH_SECONDS = 1800.0
"""A pre-push hook may run a whole test suite."""
HOST_SECONDS = 120.0
BODY_FILE = "pull_request.md"
SYMBOLIC = "ref: "
ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
"""Variables by which git, started by a hook, would work on another repository."""


@dataclass(frozen=True)
class Request:
    """What was asked for. Empty: ``branch`` is that of the run, or named after it; ``base`` is looked up."""

    branch: str = ""
    remote: str = "origin"
    base: str = ""
    is_draft: bool = False


@dataclass(frozen=True)
class Remote:
    """A remote repository. ``branches``: the commits of those asked for; ``default``: that of its HEAD, or empty."""

    name: str
    address: str
    branches: Mapping[str, str]
    default: str


def create_pull_request(
    history: RunHistory, description: Description, request: Request, say: Callable[[str], None]
) -> str:
    """Create it; returns its address, or that of the open one. ``say`` gets each thing that was done.

    Returns "" after saying the commands if neither program is installed; then nothing was done. Raises `UsageError`,
    `PublishingFailed`, `StorageError`.
    """
    return _Creation(history, description, request, say).run()


class _Creation:
    def __init__(
        self, history: RunHistory, description: Description, request: Request, say: Callable[[str], None]
    ) -> None:
        self._history, self._description, self._request, self._say = history, description, request, say
        self._record = history.folder.record()
        self._repository, self._below, self._commit = start_of(history, None)
        self._own_branch = str((self._record.get("options") or {}).get("branch") or "")
        self._named = f"{PROGRAM}/{history.folder.run_id}"
        exclude_from_path(Path(str(self._record.get("workspace"))))

    @property
    def _branch(self) -> str:
        """The branch at the remote."""
        return self._request.branch or self._own_branch or self._named

    @property
    def _local_branch(self) -> str:
        """The same here, except that of the run's worktree, which stays as the run left it."""
        return self._named if self._branch == self._own_branch else self._branch

    def run(self) -> str:
        remote = self._remote()
        proposal = self._proposal(remote)
        hosts = hosts_of(remote.address)
        host = next((host for host in hosts if shutil.which(host.program, path=self._environment["PATH"])), None)
        if host is None:
            self._say_commands(hosts, proposal)
            return ""
        self._push(remote, self._export(remote))
        return self._existing(host) or self._create(host, proposal)

    def _remote(self) -> Remote:
        name = self._request.remote
        address = self._git(REMOTE_SECONDS, "ls-remote", "--get-url", "--", name).output.strip()
        references = [f"refs/heads/{each}" for each in (self._branch, self._request.base, self._started_on) if each]
        asked = self._git(REMOTE_SECONDS, "ls-remote", "--symref", "--", name, "HEAD", *references)
        if asked.returncode != 0:
            hint = "`git remote -v` lists the remotes; --remote names one. It must be readable without a prompt."
            raise UsageError(f"cannot read the remote {name}: {self._complaint(asked)}", hint)
        found = [line.split("\t") for line in asked.output.splitlines() if "\t" in line]
        head = next((value for value, of in found if of == "HEAD" and value.startswith(SYMBOLIC)), "")
        default = head.removeprefix(f"{SYMBOLIC}refs/heads/")
        names = {"HEAD": default, **{reference: reference.removeprefix("refs/heads/") for reference in references}}
        commits = {names[of]: commit for commit, of in found if names.get(of) and not commit.startswith(SYMBOLIC)}
        return Remote(name, address, commits, default)

    @property
    def _started_on(self) -> str:
        """The branch that was checked out when the run started; empty if it is unknown or there was no branch."""
        return str((self._record.get("repository") or {}).get("branch") or "")

    def _proposal(self, remote: Remote) -> Proposal:
        base = self._base(remote)
        if base == self._branch:
            raise UsageError(f"{base} cannot be merged into itself", "Name another --branch or --base.")
        body = self._history.folder.path.resolve() / BODY_FILE
        write_text(body, self._description.body)
        return Proposal(self._branch, base, self._description.title, body, self._request.is_draft)

    def _base(self, remote: Remote) -> str:
        """The branch to merge into: as named, otherwise the one the run started on, otherwise the remote's default."""
        if base := self._request.base:
            if base not in remote.branches:
                raise UsageError(f"{remote.name} has no branch {base}", "Push it first, or name another --base.")
            return base
        found = next((each for each in (self._started_on, remote.default) if each in remote.branches), "")
        if not found:
            raise UsageError(f"{remote.name} has no branch to merge into", "Push one first, or name one with --base.")
        return found

    def _say_commands(self, hosts: Sequence[GitHost], proposal: Proposal) -> None:
        one = f"{hosts[0].program} is not installed"
        missing = one if len(hosts) == 1 else f"neither {' nor '.join(host.program for host in hosts)} is installed"
        self._say(f"nothing was created, because {missing}. These commands do it:")
        run_id, top = self._history.folder.run_id, shlex.quote(str(self._repository.top))
        runs_dir = shlex.quote(str(self._history.folder.path.resolve().parent))
        local = shlex.quote(self._local_branch)
        self._say(f"{PROGRAM} export {run_id} --branch {local} --runs-dir {runs_dir}")
        self._say(f"cd {top}")
        self._say(shlex.join(["git", *self._push_arguments]))
        for number, host in enumerate(hosts):
            self._say(f"{'# or: ' if number else ''}{host.in_shell(proposal)}")

    def _export(self, remote: Remote) -> Exported:
        exported = export(self._history, self._local_branch, self._repository, self._below, self._commit)
        if not exported.commits:
            raise UsageError(f"run {self._history.folder.run_id} changed no files that git tracks")
        there = remote.branches.get(self._branch)
        if there and there not in exported.commits:
            message = f"the branch {self._branch} of {remote.name} exists, and is not an earlier export of this run"
            raise UsageError(message, "Choose another --branch.")
        self._say(f"branch {self._local_branch}: {plural(len(exported.commits), 'commit')}")
        subject = self._repository.git.run("log", "-1", "--format=%s", exported.commits[0]).stdout.decode()
        if subject.strip() == BEFORE:
            self._say("warning: its first commit has what was uncommitted when the run started")
        return exported

    @cached_property
    def _push_arguments(self) -> list[str]:
        refspec = f"refs/heads/{self._local_branch}:refs/heads/{self._branch}"
        return ["push", "--", self._request.remote, refspec]

    def _push(self, remote: Remote, exported: Exported) -> None:
        if remote.branches.get(self._branch) == exported.tip:
            return
        pushed = self._git(PUSH_SECONDS, *self._push_arguments)
        if pushed.returncode != 0:
            command = shlex.join(["git", *self._push_arguments])
            raise PublishingFailed(
                f"the branch {self._local_branch} was exported, but not pushed: {self._complaint(pushed)}",
                f"`{command}` in {self._repository.top} shows more; then run this command again.",
            )
        self._say(f"pushed {self._branch} to {remote.name}")

    def _existing(self, host: GitHost) -> str:
        listed = self._run(host.list_open(self._branch), HOST_SECONDS)
        try:
            address = host.first_address(listed.output) if listed.returncode == 0 else None
        except ValueError:
            address = None
        if address is None:
            raise self._failed(host, listed)
        if address:
            self._say(f"the {host.noun} was open already; its text stays as it is")
        return address

    def _create(self, host: GitHost, proposal: Proposal) -> str:
        created = self._run(host.create(proposal), HOST_SECONDS)
        address = last_address(created.output)
        if created.returncode != 0 or not address:
            raise self._failed(host, created)
        self._say(f"created the {host.noun}{' as a draft' if proposal.is_draft else ''}")
        return address

    def _failed(self, host: GitHost, done: CommandResult) -> PublishingFailed:
        return PublishingFailed(
            f"the branch {self._branch} was pushed, but {host.program} created no {host.noun}: {self._complaint(done)}",
            f"`{host.program} auth status` shows whether you are signed in. Run this command again afterwards.",
        )

    def _complaint(self, done: CommandResult) -> str:
        """The first line of what a program reported, without secrets; how it ended if it reported nothing."""
        if done.timed_out:
            return f"no end after {done.seconds:.0f} s"
        lines = [line for line in (*done.errors.splitlines(), *done.output.splitlines()) if line.strip()]
        telling = (line for line in lines if line.startswith(("fatal:", "error:", "remote: error:", " ! ")))
        told = next(telling, lines[0] if lines else f"exit code {done.returncode}")
        return one_line(self._history.folder.redact(told), 500)

    def _git(self, seconds: float, *arguments: str) -> CommandResult:
        return self._run(["git", *arguments], seconds)

    def _run(self, argv: Sequence[str], seconds: float) -> CommandResult:
        """Run a program of the user, with all their settings, which asks nothing."""
        return run_command(argv, self._repository.top, self._environment, seconds, separate_errors=True)

    @cached_property
    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
        silent = {"GIT_TERMINAL_PROMPT": "0", "GH_PROMPT_DISABLED": "1", "NO_PROMPT": "1", "NO_COLOR": "1"}
        return {**inherited, **silent, "PATH": program_path(os.environ), "LC_ALL": "C.UTF-8", "LANGUAGE": ""}
