"""The real binary against an embedded playbook: one factory of clients, and their turns."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.codex.approvals import ApprovalPolicy, ToolSpec
from codex_multi_role.codex.child import Launch
from codex_multi_role.codex.client import RoleClient
from codex_multi_role.codex.codex_settings import app_server_argv
from codex_multi_role.codex.fleet import Fleet, Member
from codex_multi_role.codex.locator import find_codex
from codex_multi_role.codex.running_turn import TurnDeadlines
from codex_multi_role.codex.thread import ThreadSettings
from codex_multi_role.codex.turn_outcome import TurnOutcome, TurnRequest
from codex_multi_role.codex.warm_home import WarmHomes, user_store
from codex_multi_role.host.processes import Family
from codex_multi_role.lifecycle.model_providers import provider_settings
from codex_multi_role.playbook import Playbook, PlaybookServer
from tests.support.codex_proxy import write_launcher
from tests.support.message_fates import Once, Several
from tests.support.teams import read_lines
from tests.support.workspaces import write_program

ROLE = "worker"
API_KEY = "sk-test-0123456789abcdef0123456789"
PATIENT = TurnDeadlines(idle=30, turn=60)
ANSWER = {"json": {"summary": "fine"}}
PATCH = {"steps": [{"patch": "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch"}, ANSWER]}


class Harness:
    """Starts fleets whose only role, `ROLE`, plays ``entries``; ends them after the test."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.wire_log = folder / "wire.jsonl"
        self.stderr = folder / "stderr.log"
        self.restarts: list[str] = []
        self._stack = stack

    def member(
        self,
        entries: list[dict[str, Any]],
        *,
        sandbox: str = "read-only",
        approval_policy: str = "untrusted",
        approvals: ApprovalPolicy | None = None,
        settings: tuple[str, ...] = (),
        codex: Path | None = None,
        permissions: str = "",
        tools: tuple[ToolSpec, ...] = (),
        skill_folders: tuple[str, ...] = (),
        thread_id: str | None = None,
        inherited: Mapping[str, str] | None = None,
        home: Path | None = None,
        effort: str | None = None,
    ) -> Member:
        """A member of a fleet that plays ``entries``, the last of them again and again."""
        home = home or self.folder / "home"
        home.mkdir(exist_ok=True)
        # As a run does it: with databases, if the user's runs have made some.
        WarmHomes(find_codex(None, {}), user_store(os.environ), Family()).fill(home)
        playbook = Playbook.model_validate({"name": "test", "roles": {ROLE: entries}, "repeat_last": True})
        server = self._stack.enter_context(PlaybookServer(playbook))
        provider = provider_settings("playbook", "playbook", server.base_url, "playbook")
        return Member(
            role=ROLE,
            launch=Launch(
                app_server_argv(codex or find_codex(None, {}), (*provider, *settings)),
                {**os.environ, "CODEX_HOME": str(home), "NO_PROXY": "127.0.0.1"},
                self.workspace,
                self.stderr,
            ),
            thread=ThreadSettings(
                str(self.workspace),
                sandbox,
                approval_policy,
                "playbook",
                permissions,
                tools,
                None,
                skill_folders,
                effort,
            ),
            approvals=approvals or ApprovalPolicy(),
            wire_log=self.wire_log,
            thread_id=thread_id,
            inherited=inherited or {},
        )

    def fleet(self, entries: list[dict[str, Any]], **options: Any) -> Fleet:
        """Start a fleet of one member; ``options`` as of `member`."""
        return self.fleet_of({ROLE: self.member(entries, **options)}, first_alone=False)

    def fleet_of(
        self,
        members: Mapping[str, Member],
        ahead: str = "",
        describe: Callable[[str], Member] | None = None,
        **options: Any,
    ) -> Fleet:
        """Start a fleet of these members, which ends with the test; ``ahead`` as of `Fleet.start`."""
        fleet = Fleet(
            members,
            describe or members.__getitem__,
            version="0",
            redact=lambda text: text,
            on_started=lambda _: None,
            on_restart=lambda _, reason: self.restarts.append(reason),
            **options,
        )
        self._stack.callback(fleet.stop)
        fleet.start(ahead=ahead)
        return fleet

    def stop(self) -> None:
        """End everything started so far."""
        self._stack.close()

    def client(self, entries: list[dict[str, Any]], **options: Any) -> RoleClient:
        """The client of `ROLE` in a fleet of its own; ``options`` as of `member`."""
        return self.fleet(entries, **options).client(ROLE)


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    """A `Harness` in the folder of the test."""
    with ExitStack() as stack:
        yield Harness(tmp_path, stack)


def request(visit: int = 1, prompt: str = "go on", **more: Any) -> TurnRequest:
    """One turn of `ROLE` that gets the playbook's answer number ``visit``."""
    metadata = {
        "multi_role_role": ROLE,
        "multi_role_visit": str(visit),
        "multi_role_repair": "0",
        "multi_role_attempt": "1",
    }
    return TurnRequest(prompt, metadata=metadata, **more)


def take(client: RoleClient, visit: int = 1, deadlines: TurnDeadlines = PATIENT) -> TurnOutcome:
    """Run one turn; ``visit`` as of `request`."""
    return client.run_turn(request(visit), deadlines, lambda _: None)


def wire(harness: Harness, direction: str) -> list[dict[str, Any]]:
    """The messages of the wire log that went ``in`` (from Codex) or ``out``, in order."""
    return [line["message"] for line in read_lines(harness.wire_log) if line["direction"] == direction]


def disturbed(folder: Path, deeds: Once | Several) -> Path:
    """Codex, with these deeds done to its messages."""
    return write_launcher(folder / "codex", deeds, folder / "proxy", find_codex(None, {}))


def codex_after(folder: Path, *lines: str) -> Path:
    """Write a program that runs these lines of shell and then Codex; its path."""
    return write_program(folder / "codex", "\n".join(("#!/bin/sh", *lines, f'exec {find_codex(None, {})} "$@"\n')))


def log_in(home: Path, key: str = API_KEY) -> None:
    """Store an API key in the Codex home ``home`` by the real ``codex login``."""
    login = [str(find_codex(None, {})), "login", "--with-api-key"]
    variables = {**os.environ, "CODEX_HOME": str(home)}
    subprocess.run(login, input=key, env=variables, text=True, check=True, capture_output=True, timeout=60)
