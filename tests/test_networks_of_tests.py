"""The machines of a test: what runs there loses its connection while the cable is cut, and nothing is left of it."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from tests.support.networks import network

TALK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as line:
    while data := line.recv(1):
        line.sendall(data)
"""
SILENCE_SECONDS = 0.5


@pytest.mark.long
@pytest.mark.parametrize("is_root", [True, False])
def test_cut_cable_delays_what_is_sent(is_root: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_root:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with network() as own, socket.create_server((own.address, 0)) as server:
        with own.machine(server.getsockname()[1]) as machine:
            process = machine.start([sys.executable, "-c", TALK, machine.host, str(machine.port)])
            line, _ = server.accept()
            with line:
                assert _echo(line, b"a") == b"a"
                machine.cut()
                line.settimeout(SILENCE_SECONDS)
                with pytest.raises(TimeoutError):
                    _echo(line, b"b")
                machine.reconnect()
                line.settimeout(30)
                assert line.recv(1) == b"b"
            process.wait(30)
        assert not list(Path("/run/netns").glob(f"cmr-{own.number}-*"))


def _echo(line: socket.socket, byte: bytes) -> bytes:
    line.sendall(byte)
    return line.recv(1)
