"""Stands between a run and its Codex, and disturbs what they say to each other.

The run starts it as its Codex, by the program that `write_launcher` writes. What is no ``app-server`` is not our
business: the real binary takes our place. What was done to which message is written to ``<logs>/<role>.<n>.jsonl``, n
counting the processes of a role. Signals and the end of stdin are passed on, and the exit code is Codex's.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from tests.support import strange_messages as strange
from tests.support.message_fates import Case, Direction, Fates, Once

REPOSITORY = Path(__file__).parents[2]
BACKLOG = 1000
HELD_SECONDS = 0.3
MAX_OVERTAKING = 50
MAX_DELAY_SECONDS = 0.2
MAX_PAUSE_SECONDS = 0.01
DEAF_SECONDS = 1.0
LAST_WORDS_SECONDS = 2.0
MAX_PROCESSES = 1000
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

OTHER_WAY: dict[Direction, Direction] = {"in": "out", "out": "in"}


def write_launcher(path: Path, case: Case | Once, logs: Path, codex: Path) -> Path:
    """Write the program that a run starts as its Codex."""
    path.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        f"sys.path.insert(0, {str(REPOSITORY)!r})\n"
        "from tests.support.message_fates import Case, Once\n"
        "from tests.support.codex_proxy import stand_in\n"
        f"stand_in({case!r}, {str(logs)!r}, [{str(codex)!r}, *sys.argv[1:]])\n"
    )
    path.chmod(0o755)
    logs.mkdir(exist_ok=True)
    return path


class Log:
    """What was done, one line per message that something was done to."""

    def __init__(self, logs: Path, role: str) -> None:
        self.process, self._file = self._begin(logs, role)
        self._lock = threading.Lock()

    @staticmethod
    def _begin(logs: Path, role: str) -> tuple[str, IO[str]]:
        for number in range(1, MAX_PROCESSES):
            with contextlib.suppress(FileExistsError):
                return f"{role}.{number}", (logs / f"{role}.{number}.jsonl").open("x", buffering=1)
        raise OSError(f"{MAX_PROCESSES} processes of {role}")

    def write(self, direction: Direction, number: int, message: str, deeds: Sequence[str]) -> None:
        at = round(time.monotonic(), 3)
        entry = {"at": at, "direction": direction, "number": number, "message": message, "deeds": list(deeds)}
        with self._lock:
            self._file.write(json.dumps(entry) + "\n")


class Talk:
    """Who asked what. The requests that the proxy invented are its own: their answers are not Codex's business."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._requests: dict[tuple[Direction, object], str] = {}

    def name(self, direction: Direction, message: strange.Message) -> str:
        """The message's method, with an item's type; ``answer to <method>``."""
        method, number = message.get("method"), str(message.get("id"))
        if method is None:
            return f"answer to {self._requests.get((OTHER_WAY[direction], number), number)}"
        if "id" in message:
            self._requests[direction, number] = str(method)
        item = message.get("params", {}).get("item", {})
        return " ".join(filter(None, (method, item.get("type"))))

    def ask(self, chance: random.Random) -> bytes:
        return strange.unknown_request(chance, next(self._numbers))

    @staticmethod
    def is_answer(message: strange.Message) -> bool:
        return "method" not in message and str(message.get("id")).startswith(strange.OWN_ID)


class Relay:
    """One direction: lines come in, what their fates leave of them goes out."""

    def __init__(
        self, direction: Direction, fates: Fates, log: Log, talk: Talk, child: subprocess.Popen[bytes]
    ) -> None:
        self._direction = direction
        self._fates = fates
        self._log = log
        self._talk = talk
        self._child = child
        self._lines: queue.Queue[bytes] = queue.Queue(BACKLOG)
        self._held: list[bytes] = []
        self._overtaking = 0

    def run(self, source: IO[bytes], target: IO[bytes]) -> None:
        """Until ``source`` ends; then ``target`` is closed."""
        threading.Thread(target=self._read, args=(source,), daemon=True).start()
        with contextlib.suppress(OSError, ValueError):
            for number, line in enumerate(self._arriving(target), start=1):
                if not self._pass(number, line, target):
                    break
        with contextlib.suppress(OSError):
            target.close()

    def _read(self, source: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := source.readline():
                self._lines.put(line)
        self._lines.put(b"")

    def _arriving(self, target: IO[bytes]) -> Iterator[bytes]:
        """The lines; a held one that nothing follows goes out by itself: it is late, not lost."""
        while True:
            try:
                line = self._lines.get(timeout=HELD_SECONDS if self._held else None)
            except queue.Empty:
                self._release(target)
                continue
            if not line:
                self._release(target)
                return
            yield line

    def _release(self, target: IO[bytes]) -> None:
        held, self._held = self._held, []
        for line in held:
            _send(target, line)

    def _pass(self, number: int, line: bytes, target: IO[bytes]) -> bool:
        """Whether there is anything to be passed on after this line."""
        message = _parsed(line)
        name = self._talk.name(self._direction, message)
        if self._talk.is_answer(message):
            self._log.write(self._direction, number, name, ["swallow"])
            return True
        fate = self._fates(self._direction, number, name)
        deeds = self._possible(fate.deeds, message)
        if deeds:
            self._log.write(self._direction, number, name, sorted(deeds))
        if "die" in deeds:
            self._child.kill()
        if "deaf" in deeds:
            time.sleep(DEAF_SECONDS)
        if "delay" in deeds:
            time.sleep(fate.chance.uniform(0, MAX_DELAY_SECONDS))
        if deeds & {"die", "close"}:
            return False
        self._pass_some(deeds, line, message, fate.chance, target)
        return True

    def _possible(self, deeds: frozenset[str], message: strange.Message) -> frozenset[str]:
        if self._direction == "out" and "method" in message:
            return deeds - {"double"}
        return deeds

    def _pass_some(
        self, deeds: frozenset[str], line: bytes, message: strange.Message, chance: random.Random, target: IO[bytes]
    ) -> None:
        lines = list(self._before(deeds, message, chance))
        if "drop" not in deeds:
            lines += self._changed(deeds, line, message, chance) * (2 if "double" in deeds else 1)
        if deeds & {"swap", "late"} and not self._held:
            self._held, self._overtaking = lines, MAX_OVERTAKING if "late" in deeds else 1
            return
        for each in lines:
            _send(target, each, chance if "split" in deeds else None)
        self._overtaking -= 1
        if self._overtaking <= 0:
            self._release(target)

    def _before(self, deeds: frozenset[str], message: strange.Message, chance: random.Random) -> Iterator[bytes]:
        if "blank" in deeds:
            yield b"\n"
        if "garbage" in deeds:
            yield strange.garbage(chance)
        if "unknown" in deeds:
            yield strange.unknown_notification(chance)
        if "request" in deeds:
            yield self._talk.ask(chance)
        if "stranger" in deeds:
            yield strange.stranger(chance)
        if "foreign" in deeds and (other := strange.foreign(message)) is not None:
            yield other

    def _changed(
        self, deeds: frozenset[str], line: bytes, message: strange.Message, chance: random.Random
    ) -> list[bytes]:
        return [strange.line(each) for each in strange.newer(message, chance)] if "newer" in deeds else [line]


def _send(target: IO[bytes], line: bytes, split: random.Random | None = None) -> None:
    """Write ``line``, with ``split`` in several pieces and with pauses between them."""
    at = sorted(split.randrange(len(line)) for _ in range(split.randint(1, 4))) if split else []
    for begin, end in itertools.pairwise([0, *at, len(line)]):
        target.write(line[begin:end])
        target.flush()
        if split and end < len(line):
            time.sleep(split.uniform(0, MAX_PAUSE_SECONDS))


def _parsed(line: bytes) -> strange.Message:
    message: Any = json.loads(line)
    return message if isinstance(message, dict) else {}


def relay(case: Case | Once, logs: Path, command: Sequence[str]) -> int:
    """Run Codex with a disturbed line to it; returns its exit code, negative for a signal."""
    log = Log(logs, Path(os.environ["CODEX_HOME"]).name)
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    for each in PASSED_ON:
        signal.signal(each, lambda number, _: child.send_signal(number))
    fates, talk = case.fates(log.process), Talk()
    to_codex = Relay("out", fates, log, talk, child)
    from_codex = Relay("in", fates, log, talk, child)
    # Python's own stdout does not close its descriptor.
    ends = ((to_codex, sys.stdin.buffer, child.stdin), (from_codex, child.stdout, os.fdopen(1, "wb")))
    threads = [threading.Thread(target=each.run, args=pipes, daemon=True) for each, *pipes in ends]
    for thread in threads:
        thread.start()
    code = child.wait()
    threads[-1].join(LAST_WORDS_SECONDS)
    return code


def stand_in(case: Case | Once, logs: str, command: Sequence[str]) -> None:
    """Be Codex, whichever command it is given; does not return."""
    if command[1:2] != ["app-server"]:
        os.execv(command[0], list(command))
    code = relay(case, Path(logs), command)
    if code < 0:
        for each in PASSED_ON:
            signal.signal(each, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)  # a thread of ours may still be reading
