"""The server at the socket."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from codex_multi_role.extensions.pages.serve import server
from tests.support.recorded_runs import make_run
from tests.support.serving import SMALL, answering

DEADLINE_SECONDS = 60


@pytest.mark.parametrize("size", [50_000, 5_000_000], ids=["the end of an answer", "an answer under way"])
def test_visitor_who_takes_nothing_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(server, "SEND_SECONDS", 0.05)
    folder = make_run(tmp_path / "runs", "first")
    (folder.path / "long.txt").write_bytes(b"x" * size)
    with answering(tmp_path / "runs") as (serving, port), socket.socket() as visitor:
        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        visitor.connect(("127.0.0.1", port))
        visitor.sendall(f"GET /runs/first/files/long.txt HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert visitor.recv(1) == b"H"
        end = time.monotonic() + DEADLINE_SECONDS
        while serving.server_state.connections:
            assert time.monotonic() < end, "it keeps a place"
            time.sleep(0.01)
