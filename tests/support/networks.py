"""Machines of a test, in network namespaces of their own, each with a cable to this host that can be cut.

Only root may make them. For everybody else a machine is this host, and its cable a relay in front of the server.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.afterwards import afterwards
from tests.support.relays import relayed

LOOPBACK = "127.0.0.1"
SUBNET = "198.18"
"""Nobody's: reserved for measurements (RFC 2544)."""
COMMAND_SECONDS = 30.0
REMOVE_BRIDGE = 'if [ -e "/sys/class/net/$1" ]; then ip link delete "$1"; fi'
REMOVE_NAMESPACE = """
if [ -e "/run/netns/$1" ]; then
    for process in $(ip netns pids "$1"); do kill -KILL "$process" || true; done
    ip netns delete "$1"
fi
"""


@dataclass(frozen=True)
class Machine:
    """``host`` and ``port``: where its processes find the server on this host that it was made for.

    ``cut`` pulls out its cable: no byte arrives, and no connection ends. ``reconnect`` puts it back in.
    """

    host: str
    port: int
    cut: Callable[[], None]
    reconnect: Callable[[], None]
    enter: tuple[str, ...] = ()

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """A process on this machine; ``options``: of `subprocess.Popen`."""
        return subprocess.Popen([*self.enter, *command], text=True, **options)


@dataclass(frozen=True)
class Network:
    """``address``: of this host, as its machines see it; servers for them listen there. ``number``: of its bridge."""

    address: str = LOOPBACK
    number: int | None = None
    _machines: Iterator[int] = field(default_factory=lambda: itertools.count(2))

    @contextmanager
    def machine(self, port: int) -> Iterator[Machine]:
        """A new machine whose processes reach this host's ``port``. What is left of them in its namespace is killed."""
        if self.number is None:
            with relayed((LOOPBACK, port)) as relay:
                yield Machine(LOOPBACK, relay.port, relay.cut, relay.reconnect)
            return
        name = f"cmr-{self.number}-{next(self._machines)}"
        with afterwards(REMOVE_NAMESPACE, name):
            self._add(name)
            cable = partial(_ip, "link", "set", name)
            enter = ("nsenter", f"--net=/run/netns/{name}")
            yield Machine(self.address, port, partial(cable, "down"), partial(cable, "up"), enter)

    def _add(self, name: str) -> None:
        """A namespace called ``name``, at a cable to the bridge that is called so, too."""
        address = f"{SUBNET}.{self.number}.{name.rpartition('-')[2]}/24"
        _ip("netns", "add", name)
        _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", name, "master", _bridge(self.number), "up")
        _ip("-n", name, "address", "add", address, "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", name, "link", "set", device, "up")


@contextmanager
def network() -> Iterator[Network]:
    """A network of this test only."""
    with ExitStack() as stack:
        number = _reserve(stack)
        if number is None:
            yield Network()
            return
        address = f"{SUBNET}.{number}.1"
        _ip("address", "add", f"{address}/24", "dev", _bridge(number))
        _ip("link", "set", _bridge(number), "up")
        yield Network(address, number)


def _reserve(stack: ExitStack) -> int | None:
    """The number of a new bridge, which no other test has; None if this process may not make any."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter"))):
        return None
    for number in random.sample(range(256), 256):
        with suppress(subprocess.CalledProcessError):
            _ip("link", "add", _bridge(number), "type", "bridge")
            stack.enter_context(afterwards(REMOVE_BRIDGE, _bridge(number)))
            return number
        if not Path("/sys/class/net", _bridge(number)).exists():
            return None  # root of a container
    return None


def _bridge(number: int | None) -> str:
    return f"cmr-{number}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=COMMAND_SECONDS)
