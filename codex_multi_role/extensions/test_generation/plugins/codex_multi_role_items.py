"""Run each item of a test plan in a process of its own, forked before the code under test is imported.

One line of JSON per test: ``{name, line, error, kind, is_from_target, is_awaitable, got, found}``; ``line`` is 0 if it
passed. What it leaves behind (threads, processes, sockets, state of modules) ends with its process.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import select
import signal
import sys
import time
import traceback
from types import FrameType

import pytest

FILE = os.environ["CODEX_MULTI_ROLE_ITEMS"]
TARGET = os.path.realpath(os.environ["CODEX_MULTI_ROLE_ITEMS_TARGET"])
SECONDS = 10.0
MAX_SHOWN, MAX_BYTES = 300, 65_536
Told = dict[str, object]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    told = _in_child(pyfuncitem)
    if told.get("line") and _compared(_in_child(pyfuncitem)) != _compared(told):
        told = {"line": 0, "error": "it does not do the same twice"}
    with open(FILE, "a", encoding="utf-8") as file:  # noqa: PTH123 - an old Python
        file.write(json.dumps({"name": pyfuncitem.name, **told}) + "\n")
    return True


def _compared(told: Told) -> list[object]:
    return [told.get("line"), told.get("kind"), re.sub("0x[0-9a-f]+", "", str(told.get("got")))]


def _in_child(item: pytest.Function) -> Told:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.write(writing, json.dumps(_ran(item)).encode()[:MAX_BYTES] + b"\n")
        os._exit(0)
    os.close(writing)
    try:
        answer = _answer(reading)
    finally:
        os.close(reading)
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)  # waits: for a process that was just killed
    return answer or {"line": 0, "error": f"it ended its process (status {status})"}


def _answer(reading: int) -> Told:
    until, found = time.monotonic() + SECONDS, b""
    while not found.endswith(b"\n"):
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return {"line": 0, "error": f"no result after {SECONDS:.0f} s"}
        if not (part := os.read(reading, MAX_BYTES)):  # waits: for nothing, it is ready
            return {}
        found += part
    told: Told = json.loads(found)
    return told


def _ran(item: pytest.Function) -> Told:
    try:
        item.obj()
    except BaseException as error:
        return _described(error, item.fspath.strpath)
    return {"line": 0, "error": ""}


def _described(error: BaseException, file: str) -> Told:
    frames = [*traceback.walk_tb(error.__traceback__)]
    own = [place for place, (frame, _) in enumerate(frames) if _file_of(frame) == os.path.realpath(file)]
    if not own:
        return {"line": 0, "error": _shown(error)}
    frame, line = frames[own[-1]]
    folder = os.path.realpath(".") + os.sep
    files = [getattr(each, "__file__", None) for each in sys.modules.copy().values()]
    deeper = [each for each, _ in frames[own[-1] + 1 :]]
    result = frame.f_locals.get("result")
    return {
        "line": line,
        "error": _shown(error),
        "kind": [each.__name__ for each in type(error).__mro__],
        "is_from_target": any(_file_of(each).startswith(folder) for each in deeper),
        "is_awaitable": inspect.isawaitable(result),
        "got": _represented(result) if "result" in frame.f_locals else "",
        "found": any(isinstance(each, str) and os.path.realpath(each) == TARGET for each in files),
    }


def _file_of(frame: FrameType) -> str:
    return os.path.realpath(frame.f_code.co_filename)


def _shown(error: BaseException) -> str:
    try:
        return " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())[:MAX_SHOWN]
    except Exception:
        return type(error).__name__


def _represented(value: object) -> str:
    try:
        return repr(value)[:MAX_SHOWN]
    except Exception as error:
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
