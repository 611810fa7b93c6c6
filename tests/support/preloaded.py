"""Programs in a process of their own that has nothing left to import: forked from one that has.

Importing takes most of what a short run in a process of its own takes. What a process imports, and how it is started,
is tried with `tests.support.console.console_process`.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from io import FileIO, TextIOWrapper
from pathlib import Path
from typing import Any

TOP = Path(__file__).parents[2]
ROOMS = ("cli", "lifecycle", "engine", "steps", "codex", "playbook", "presentation")
OF_EXTENSIONS = ("extensions.results", "extensions.pages.serve")
SET_CHILD_SUBREAPER = 36
LONGEST_REQUEST = 1 << 17
LOOK_SECONDS = 0.001
DEADLINE_SECONDS = 60.0
LOCK = threading.Lock()
ENVIRONMENT = dict(os.environ)
"""Of the test process itself: that of a test may name its folder, and would outlive it."""


def can_be_preloaded(argv: Sequence[str]) -> bool:
    """Whether ``argv`` is a program or a module for this Python, on a system where children can be adopted."""
    return sys.platform == "linux" and argv[0] == sys.executable and argv[1] in ("-c", "-m")


def started(argv: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """``argv`` in a process of its own, preloaded if it can be. ``options``: of `subprocess.Popen`."""
    popen = Preloaded if can_be_preloaded(argv) else subprocess.Popen
    return popen(argv, text=True, **options)


class Preloaded(subprocess.Popen[str]):
    """``python -c PROGRAM …`` or ``python -m MODULE …``, a child of this process as if it had started it.

    With a session of its own, a terminal as its standard input controls it. ``within``: a process whose user and mount
    namespaces it enters; ``cwd`` is a path as that one sees it.
    """

    def __init__(self, argv: Sequence[str], *, within: int = 0, **options: Any) -> None:
        self._within = within
        super().__init__(argv, **options)

    def _execute_child(  # what `Popen` calls to start the program, with all that it has prepared
        self, args: Sequence[str], executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any, env: Any,
        startupinfo: Any, creationflags: Any, shell: Any, p2cread: int, p2cwrite: int, c2pread: int, c2pwrite: int,
        errread: int, errwrite: int, restore_signals: Any, gid: Any, gids: Any, uid: Any, umask: Any,
        start_new_session: bool, *_: Any,
    ) -> None:  # fmt: skip
        sys.audit("subprocess.Popen", executable or args[0], args, cwd, env)  # as `Popen` does
        request = {
            "argv": [*args[1:]],
            "folder": str(cwd or Path.cwd()),
            "variables": dict(os.environ if env is None else env),
            "has_session": start_new_session,
            "within": self._within,
        }
        streams = [given if given >= 0 else own for own, given in enumerate((p2cread, c2pwrite, errwrite))]
        with LOCK:
            self.pid = _start(json.dumps(request).encode(), streams)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


def _start(request: bytes, streams: list[int]) -> int:
    line = _line()
    _adopt_orphans(True)
    try:
        socket.send_fds(line, [request], streams)
        return int(line.recv(64))
    finally:
        _adopt_orphans(False)


def _adopt_orphans(wanted: bool) -> None:
    """Whether a descendant whose parent ends becomes a child of this process."""
    _call_system("prctl", SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)


def _enter_namespaces(pid: int) -> None:
    for name in ("user", "mnt"):
        with Path(f"/proc/{pid}/ns/{name}").open() as namespace:
            _call_system("setns", namespace.fileno(), 0)


def _call_system(name: str, *arguments: int) -> None:
    if ctypes.CDLL(None, use_errno=True)[name](*arguments):
        raise OSError(ctypes.get_errno(), name)


@cache
def _line() -> socket.socket:
    """The line to the process that has imported everything; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    program = f"from tests.support.preloaded import serve; serve({theirs.fileno()}, {os.getpid()})"
    process = subprocess.Popen([sys.executable, "-c", program], cwd=TOP, env=ENVIRONMENT, pass_fds=[theirs.fileno()])
    theirs.close()
    ours.settimeout(DEADLINE_SECONDS)

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def serve(descriptor: int, client: int) -> None:
    """Start what is asked for over ``descriptor``, as a child of the process ``client``; ends with it."""
    rooms = ROOMS if find_spec("codex_multi_role.extensions") is None else (*ROOMS, *OF_EXTENSIONS)
    for room in (f"codex_multi_role.{name}" for name in rooms):
        for module in pkgutil.iter_modules(import_module(room).__path__, f"{room}."):
            import_module(module.name)
    if rooms != ROOMS:
        import_module("codex_multi_role.extensions.pages.report.rendering").template("report.html")
    gc.freeze()  # otherwise each process would copy all of it as it looks for garbage, and at its end
    line = socket.socket(fileno=descriptor)
    while True:
        data, streams, _, _ = socket.recv_fds(line, LONGEST_REQUEST, 3)
        if not data:
            os._exit(0)
        if parent := os.fork():
            os.waitpid(parent, 0)
            for stream in streams:
                os.close(stream)
        elif os.fork():
            os._exit(0)  # its child is an orphan now
        else:
            while os.getppid() != client:
                time.sleep(LOOK_SECONDS)
            line.send(str(os.getpid()).encode())
            line.close()
            _become(streams, **json.loads(data))


def _become(
    streams: list[int], argv: list[str], folder: str, variables: dict[str, str], has_session: bool, within: int
) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if has_session:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if within:
        _enter_namespaces(within)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.stdin = TextIOWrapper(FileIO(0, closefd=False), "utf-8")
    sys.stdout = TextIOWrapper(FileIO(1, "w", closefd=False), "utf-8", write_through=True)
    sys.stderr = TextIOWrapper(FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)
    sys.path[0] = folder
    kind, program, *arguments = argv
    sys.argv = [kind, *arguments]
    if kind == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    sys.exit()
