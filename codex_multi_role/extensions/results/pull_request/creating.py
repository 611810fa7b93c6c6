"""Create a pull request for a run: export its branch, push it, ask the git host. A second call creates no other."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from codex_multi_role.errors import PublishingFailed, UsageError
from codex_multi_role.extensions.results.commit_texts import BEFORE
from codex_multi_role.extensions.results.exporting import Exported, export_branch, start_of
from codex_multi_role.extensions.results.pull_request.description import Description
from codex_multi_role.extensions.results.pull_request.git_hosts import GitHost, Proposal, hosts_of, last_address
from codex_multi_role.extensions.results.run_history import RunHistory
from codex_multi_role.host.atomic import write_text
from codex_multi_role.host.programs import program_path
from codex_multi_role.presentation.wording import one_line, plural
from codex_multi_role.run_folder.folder import PROGRAM
from codex_multi_role.workspace.cloning import RemoteGit
from codex_multi_role.workspace.commands import CommandResult, run_command

SECONDS = 120.0
ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
"""Variables by which git, started by a hook, would work on another repository."""
SILENT = {"GIT_TERMINAL_PROMPT": "0", "GH_PROMPT_DISABLED": "1", "NO_PROMPT": "1", "NO_COLOR": "1"}
ENGLISH = {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}
TELLING = ("fatal:", "error:", "remote: error:", " ! ")


@dataclass(frozen=True)
class UserPrograms:
    """Programs that run in the repository ``top``, none of them from a folder where models write."""

    top: Path
    redact: Callable[[str], str]

    def has(self, program: str) -> bool:
        return shutil.which(program, path=self._environment["PATH"]) is not None

    def run(self, argv: Sequence[str], seconds: float = SECONDS) -> CommandResult:
        return run_command(argv, self.top, self._environment, seconds, separate_errors=True)

    def complaint(self, done: CommandResult) -> str:
        """The most telling line that a program reported, without secrets; how it ended if it reported nothing."""
        if done.timed_out:
            return f"no end after {done.seconds:.0f} s"
        lines = [line for line in (*done.errors.splitlines(), *done.output.splitlines()) if line.strip()]
        first = lines[0] if lines else f"exit code {done.returncode}"
        return one_line(self.redact(next((line for line in lines if line.startswith(TELLING)), first)), 500)

    @cached_property
    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
        return {**inherited, **SILENT, **ENGLISH, "PATH": program_path(os.environ)}


BODY_FILE = "pull_request.md"
HEADS = "refs/heads/"


@dataclass(frozen=True)
class Request:
    """What was asked for. Empty: ``branch`` is that of the run, or named after it; ``base`` is looked up."""

    branch: str = ""
    remote: str = "origin"
    base: str = ""
    is_draft: bool = False
    repository: Path | None = None


def create_pull_request(
    history: RunHistory, description: Description, request: Request, say: Callable[[str], None]
) -> str:
    """Create it; returns its address, or that of the open one. ``say`` gets each thing that was done.

    Raises `UsageError`, `StorageError`; `PublishingFailed` if it could not be created.
    """
    return _Creation(history, description, request, say).run()


class _Creation:
    def __init__(
        self, history: RunHistory, description: Description, request: Request, say: Callable[[str], None]
    ) -> None:
        self._history, self._description, self._request, self._say = history, description, request, say
        record = history.folder.record()
        self._repository, self._below, self._commit = start_of(history, request.repository)
        self._programs = UserPrograms(self._repository.top, history.folder.redact)
        self._remote = RemoteGit(self._repository.top / ".git", self._repository.top)
        self._started_on = str((record.get("repository") or {}).get("branch") or "")
        own = str((record.get("options") or {}).get("branch") or "")
        named = f"{PROGRAM}/{history.folder.run_id}"
        self._branch = request.branch or own or named
        self._local_branch = named if self._branch == own else self._branch  # its own is checked out in its worktree

    def run(self) -> str:
        proposal = self._proposal()
        hosts = hosts_of(self._git("ls-remote", "--get-url", "--", self._request.remote))
        installed = [host for host in hosts if self._programs.has(host.program)]
        if not installed:
            raise self._not_installed(hosts, proposal)
        host, address = self._first_that_answers(installed)
        self._push(self._export())
        if address:
            self._say(f"the {host.noun} was open already; its text stays as it is")
        return address or self._create(host, proposal)

    @cached_property
    def _commits(self) -> dict[str, str]:
        """The commits of those branches of the remote that matter, by name."""
        names = filter(None, (self._branch, self._request.base, self._started_on))
        listed = self._git("ls-remote", "--", self._request.remote, *(f"{HEADS}{name}" for name in names))
        found = (line.partition(f"\t{HEADS}") for line in listed.splitlines())
        return {name: commit for commit, _, name in found}

    def _proposal(self) -> Proposal:
        base = self._request.base or (self._started_on if self._started_on in self._commits else "")
        if base and base not in self._commits:
            raise UsageError(f"{self._request.remote} has no branch {base}", "Push it first, or name another --base.")
        if base == self._branch:
            raise UsageError(f"{base} cannot be merged into itself", "Name another --branch or --base.")
        body = self._history.folder.path.resolve() / BODY_FILE
        write_text(body, self._description.body)
        return Proposal(self._branch, base, self._description.title, body, self._request.is_draft)

    def _not_installed(self, hosts: Sequence[GitHost], proposal: Proposal) -> PublishingFailed:
        missing = f"{' or '.join(host.program for host in hosts)} is not installed"
        folder, top = self._history.folder, str(self._repository.top)
        commands = [
            folder.command("export", "--branch", self._local_branch, "--repo", top),
            shlex.join(["cd", top]),
            self._push_command,
            *(f"{'# or: ' if number else ''}{host.in_shell(proposal)}" for number, host in enumerate(hosts)),
        ]
        hint = "Install one and repeat this command, or run these commands where one is installed:"
        return PublishingFailed(f"nothing was created, because {missing}", "\n".join([hint, *commands]))

    def _first_that_answers(self, hosts: Sequence[GitHost]) -> tuple[GitHost, str]:
        """The first host that lists open requests for the branch, with the address of the first one, or empty."""
        complaints = []
        for host in hosts:
            listed = self._programs.run(host.list_open(self._branch))
            if listed.returncode == 0 and (address := host.first_address(listed.output)) is not None:
                return host, address
            complaints.append(f"{host.program}: {self._programs.complaint(listed)}")
        status = " and ".join(f"`{host.program} auth status`" for host in hosts)
        hint = f"{status} shows whether you are signed in. Without --create, this command prints the text."
        raise PublishingFailed(f"nothing was done, because {'; '.join(complaints)}", hint)

    def _export(self) -> Exported:
        exported = export_branch(self._history, self._local_branch, self._repository, self._below, self._commit)
        if not exported.commits:
            raise UsageError(f"run {self._history.folder.run_id} changed no files that git tracks")
        if exported.ignored:
            self._say(f"left out, because git ignores them: {', '.join(exported.ignored)}")
        if self._commits.get(self._branch, exported.tip) not in exported.commits:
            message = f"the branch {self._branch} of {self._request.remote} exists, and is not an earlier export"
            raise UsageError(message, "Choose another --branch.")
        self._say(f"branch {self._local_branch}: {plural(len(exported.commits), 'commit')}")
        subject = self._repository.git.run("show", "--no-patch", "--format=%s", exported.commits[0]).stdout.decode()
        if subject.strip() == BEFORE:
            self._say("warning: its first commit has what was uncommitted when the run started")
        return exported

    @property
    def _push_arguments(self) -> list[str]:
        return ["push", "--", self._request.remote, f"{HEADS}{self._local_branch}:{HEADS}{self._branch}"]

    @property
    def _push_command(self) -> str:
        return f"git {shlex.join(self._push_arguments)}"

    def _push(self, exported: Exported) -> None:
        if self._commits.get(self._branch) == exported.tip:
            return
        problem = self._push_large_files() or self._remote.attempt(*self._push_arguments)[1]
        if problem:
            raise PublishingFailed(
                f"branch {self._local_branch} was exported, but not pushed: {self._complaint(problem)}",
                f"`{self._push_command}` in {self._repository.top} shows more. Then repeat this command.",
            )
        self._say(f"pushed {self._branch} to {self._request.remote}")

    def _push_large_files(self) -> str:
        """What Git LFS does in a hook, since none runs; returns why it failed, or nothing."""
        if not (self._remote.common_dir / "lfs" / "objects").is_dir():
            return ""
        return self._remote.attempt("lfs", "push", self._request.remote, self._local_branch)[1]

    def _complaint(self, problem: str) -> str:
        return one_line(self._history.folder.redact(problem), 500)

    def _create(self, host: GitHost, proposal: Proposal) -> str:
        created = self._programs.run(host.create(proposal))
        address = last_address(created.output)
        if created.returncode != 0 or not address:
            told = self._programs.complaint(created)
            message = f"branch {self._branch} was pushed, but {host.program} created no {host.noun}: {told}"
            raise PublishingFailed(message, "Once the cause is gone, repeat this command.")
        self._say(f"created the {host.noun}{' as a draft' if proposal.is_draft else ''}")
        return address

    def _git(self, *arguments: str) -> str:
        printed, problem = self._remote.attempt(*arguments)
        if problem:
            hint = "`git remote -v` lists the remotes; --remote names one. It must be readable without a prompt."
            raise UsageError(f"cannot read {self._request.remote}: {self._complaint(problem)}", hint)
        return printed
