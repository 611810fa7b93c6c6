"""One process of a fleet: its name, how it is started, and what is reported once it is ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.child import Launch
from codex_multi_role.codex.thread import ThreadSettings


def instance_name(role: str, number: int) -> str:
    """The name of the role's process with that number: ``role``, ``role.2``, ``role.3`` …"""
    return role if number == 1 else f"{role}.{number}"


@dataclass(frozen=True)
class Member:
    """How to start one role's process and thread.

    ``thread_id``: the thread of an earlier process of the role; ``inherited`` as in `RoleClient`.
    """

    role: str
    launch: Launch
    thread: ThreadSettings
    approvals: ApprovalPolicy
    wire_log: Path
    thread_id: str | None = None
    inherited: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Started:
    """The fleet's report of a ready process; ``warning`` as in `model_warning`."""

    role: str
    pid: int
    thread_id: str
    seconds: float
    resumed: bool
    warning: str = ""
