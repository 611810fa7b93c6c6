"""One live owner per run: an advisory lock that ends with its process and names it; and what a person wants of it.

That it stops, or pauses: its own process reads the request, wherever that is. The address is the run, because a process
may work on several, and be somebody else's program.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from codex_multi_role.errors import RunBusy
from codex_multi_role.host.atomic import storage_errors, write_json
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_folder.typed_answers import user_name

if TYPE_CHECKING:
    from codex_multi_role.run_folder.folder import RunFolder


class Owner:
    """Keeps ``owner.json`` locked while this process works on the run.

    The kernel releases the lock however the process ends. The pid **and** the start time in the file identify the
    process, because pids are reused, and ``session`` this work of it. ``what``: the owned thing in messages; by default
    the run of the folder.
    """

    def __init__(self, path: Path, what: str = "") -> None:
        self.path = path
        self._what = what or f"run {path.parent.name}"
        self.session = secrets.token_hex(8)
        self.abandoned = False
        """Whether the previous owner was killed."""
        self._file: TextIO | None = None

    def acquire(self) -> None:
        """Take the lock. Raises `RunBusy`, which names the process that has it, or `StorageError`."""
        with storage_errors(self.path), ExitStack() as stack:
            file = stack.enter_context(self.path.open("a+", encoding="utf-8"))
            self._lock(file)
            self.abandoned = self.path.stat().st_size > 0
            self._sign(file)
            stack.pop_all()
        self._file = file

    def release(self) -> None:
        """Release the lock and leave the file empty. Raises `StorageError`."""
        if self._file is not None:
            with storage_errors(self.path), self._file as file:
                self._file = None
                file.truncate(0)

    def keep(self) -> None:
        """Hold the lock until this process ends: something in it still works on the run and cannot be stopped."""
        if self._file is not None:
            os.dup(self._file.fileno())

    def _lock(self, file: TextIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunBusy(
                f"{self._what} is being worked on by process {self._holder()}",
                "Wait for it to end, or stop it (Ctrl-C in its terminal), then try again.",
            ) from error

    def _sign(self, file: TextIO) -> None:
        import psutil  # imported here, because only a process that starts a run needs it

        file.truncate(0)
        signed = {"pid": os.getpid(), "start_time": psutil.Process().create_time(), "session": self.session}
        file.write(json.dumps(signed) + "\n")
        file.flush()

    def _holder(self) -> str:
        try:
            return str(json.loads(self.path.read_text(encoding="utf-8"))["pid"])
        except (OSError, ValueError, KeyError):
            return "that is just starting"


def is_alive(folder: RunFolder) -> bool:
    """Whether the process that last owned the run still works on it."""
    return is_running(read_owner(folder))


def is_running(owner: Mapping[str, Any]) -> bool:
    """Whether the process that `read_owner` returned is running; one elsewhere has no pid here."""
    if "pid" not in owner:
        return bool(owner)
    import psutil  # as above

    from codex_multi_role.host import processes

    try:
        process = psutil.Process(owner["pid"])
        return process.create_time() == owner["start_time"] and processes.lives(process)
    except (psutil.Error, KeyError, TypeError, ValueError):  # the last three: no process wrote that file
        return False


def is_held(folder: RunFolder) -> bool:
    """Whether a process has the lock. A folder from elsewhere can name any process, but none has its lock."""
    with suppress(OSError), folder.owner_path.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    return True


def read_owner(folder: RunFolder) -> dict[str, Any]:
    """Read ``pid``, ``start_time`` and ``session`` of who owns the run; empty once it has released the run."""
    return read_object(folder.owner_path)


@dataclass(frozen=True)
class StopRequest:
    """``session``: which one is meant, as in ``owner.json``: a later one does not stop. ``at``: ISO 8601, UTC.

    ``pauses``: the turns at work are finished and recorded first. ``hurries``: the programs at work are killed.
    """

    session: str
    by: str
    at: str
    pauses: bool = False
    hurries: bool = False


class StopRequests:
    """Those of the run in ``run_folder``; the latest counts."""

    def __init__(self, run_folder: Path) -> None:
        self._path = run_folder / "stop.json"

    def find(self, session: str) -> StopRequest | None:
        """What is requested of this session."""
        try:
            request = StopRequest(**read_object(self._path))
        except TypeError:  # nothing is, or the file is damaged
            return None
        return request if request.session == session else None

    def request(self, session: str, *, pauses: bool = False) -> StopRequest:
        """In the name of this process's user. Raises `StorageError`."""
        request = StopRequest(session, user_name(), now(), pauses)
        write_json(self._path, asdict(request))
        return request

    def hurry(self, request: StopRequest) -> None:
        """Raises `StorageError`."""
        write_json(self._path, asdict(replace(request, hurries=True)))
