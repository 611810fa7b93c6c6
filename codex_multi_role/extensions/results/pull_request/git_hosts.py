"""The programs that create pull requests: ``gh`` for GitHub, ``glab`` for GitLab, where they are called merge requests.

https://cli.github.com/manual/gh_pr_create, https://docs.gitlab.com/cli/mr/create/
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HOST = re.compile(r"(?:[a-z+]+://(?:[^@/]*@)?|[^@/:]+@|)(?P<host>[^/:@]+)[:/]", re.IGNORECASE)
ADDRESS = re.compile(r"https?://\S+")


@dataclass(frozen=True)
class Proposal:
    """The request to merge the branch ``head`` into ``base`` (empty: the host's default branch).

    ``body``: the file of its text.
    """

    head: str
    base: str
    title: str
    body: Path
    is_draft: bool


@dataclass(frozen=True)
class GitHost:
    """``word``: in the name of every server of this kind; ``address``: the key of an address in its JSON."""

    program: str
    word: str
    noun: str
    address: str
    listing: tuple[str, ...]
    creating: tuple[str, ...]
    head: str
    base: str

    def list_open(self, head: str) -> list[str]:
        """The command that prints the open requests for ``head`` as JSON."""
        return [self.program, *self.listing, self.head, head]

    def create(self, proposal: Proposal) -> list[str]:
        """The command that creates the request; its body is at the end."""
        command = self._without_body(proposal)
        if self is GITHUB:
            return [*command, "--body-file", str(proposal.body)]
        return [*command, "--description", proposal.body.read_text(encoding="utf-8")]

    def in_shell(self, proposal: Proposal) -> str:
        """`create` for people to copy."""
        file = shlex.quote(str(proposal.body))
        body = f"--body-file {file}" if self is GITHUB else f'--description "$(cat {file})"'
        return f"{shlex.join(self._without_body(proposal))} {body}"

    def _without_body(self, proposal: Proposal) -> list[str]:
        base = [self.base, proposal.base] if proposal.base else []
        draft = ["--draft"] if proposal.is_draft else []
        return [self.program, *self.creating, self.head, proposal.head, *base, *draft, "--title", proposal.title]

    def first_address(self, printed: str) -> str | None:
        """The address of the first request that `list_open` printed, empty without one; None if it is no such list."""
        try:
            listed = json.loads(printed or "[]")
            return next((str(each[self.address]) for each in listed), "") if isinstance(listed, list) else None
        except (ValueError, LookupError, TypeError):
            return None


GITHUB = GitHost(
    program="gh",
    word="github",
    noun="pull request",
    address="url",
    listing=("pr", "list", "--state", "open", "--json", "url"),
    creating=("pr", "create"),
    head="--head",
    base="--base",
)
GITLAB = GitHost(
    program="glab",
    word="gitlab",
    noun="merge request",
    address="web_url",
    listing=("mr", "list", "--output", "json"),
    creating=("mr", "create", "--yes"),
    head="--source-branch",
    base="--target-branch",
)
GIT_HOSTS = (GITHUB, GITLAB)


def hosts_of(remote: str) -> Sequence[GitHost]:
    """The kind of host at the address ``remote``; all kinds if the name of its server tells none."""
    found = HOST.match(remote)
    name = found["host"].lower() if found else ""
    return [host for host in GIT_HOSTS if host.word in name] or GIT_HOSTS


def last_address(printed: str) -> str:
    """The last address in what a program printed after it created a request; empty without one."""
    return next(reversed(ADDRESS.findall(printed)), "")
