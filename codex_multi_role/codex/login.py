"""Codex's login state, queried without a thread and without a turn."""

from __future__ import annotations

import os
import tempfile
from contextlib import nullcontext
from pathlib import Path

from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.child import Launch
from codex_multi_role.codex.client import RoleClient
from codex_multi_role.codex.codex_settings import app_server_argv, needs_user_home, user_home
from codex_multi_role.codex.home import require_user_home, sole_start
from codex_multi_role.codex.thread import ThreadSettings
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.wire_log import WireLog


def login_state(codex: Path, settings: tuple[str, ...], version: str) -> str:
    """Who is logged in with these ``-c`` settings, as text. Raises `CodexUnavailable`, `CodexStartFailed`."""
    if needs_user_home(settings):
        require_user_home(os.environ)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own_home = {} if needs_user_home(settings) else {"CODEX_HOME": name}
        launch = Launch(app_server_argv(codex, settings), {**os.environ, **own_home}, folder, folder / "stderr.log")
        transport = AppServerTransport(launch, WireLog(folder / "events.jsonl", lambda text: text))
        client = RoleClient(transport, ThreadSettings(name, "read-only", "untrusted", None), ApprovalPolicy(), {})
        try:
            with nullcontext() if own_home else sole_start(user_home(os.environ)):
                return client.connect(version)
        finally:
            client.stop()
