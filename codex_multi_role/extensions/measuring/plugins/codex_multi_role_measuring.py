"""pytest under measurement: all tests in one process, to the end, with no other measurement.

The project's settings could otherwise replace coverage.py (pytest-cov), spread the tests over processes (xdist), stop
at the first failure, run only those that failed before, or shorten the messages that tell an import error from a bug.
One file names the running test, in case pytest itself does not survive; another records whether a
second Python was started, whose lines nobody counts.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

FOLDER = Path(os.environ["CODEX_MULTI_ROLE_MEASURING"])
STARTING_A_PROGRAM = {"os.exec", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen"}
NEUTRAL: dict[str, object] = {
    **{"numprocesses": None, "dist": "no", "tx": [], "maxfail": 0},
    **{"lf": False, "failedfirst": False, "stepwise": False, "stepwise_skip": False, "tbstyle": "auto"},
}
SWITCHED_OFF = {
    "pytest_cov": (
        ("--cov", "--cov-report", "--cov-config", "--cov-fail-under", "--cov-context", "--cov-precision"),
        ("--cov-append", "--cov-branch", "--cov-reset", "--no-cov", "--no-cov-on-fail"),
    ),
    "xdist": (("-n", "--numprocesses", "--maxprocesses", "--dist", "--tx"), ("-d",)),
}
"""By plugin, the options with a value and those without, which are accepted even if the plugin is not installed."""

made_by: dict[tuple[str, object], str] = {}
ended: list[pytest.Session] = []


def _note_other_python(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.fork" or (event in STARTING_A_PROGRAM and "python" in repr(arguments[:2])):
        (FOLDER / "other_python").touch()


sys.addaudithook(_note_other_python)


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser) -> Generator[None]:
    for plugin, (with_value, flags) in SWITCHED_OFF.items():
        if not early_config.pluginmanager.hasplugin(plugin):
            group = parser.getgroup(plugin)
            for name in with_value:
                group._addoption(name, nargs="?", action="append")  # the public one refuses -n
            for name in flags:
                group._addoption(name, action="store_true")
    if hasattr(early_config.known_args_namespace, "cov_source"):
        early_config.known_args_namespace.cov_source = []
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None]:
    for name, value in NEUTRAL.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)
    yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    excluded = set(json.loads((FOLDER / "excluded.json").read_text()))
    if gone := [item for item in items if item.nodeid in excluded]:
        items[:] = [item for item in items if item.nodeid not in excluded]
        config.hook.pytest_deselected(items=gone)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None]:
    before = _running()
    yield
    made_by.update(dict.fromkeys(_running() - before, item.nodeid))


def _running() -> set[tuple[str, object]]:
    """What outlives a test: threads that Python waits for and, where the system tells, processes and sockets."""
    threads = {("a thread", each) for each in threading.enumerate() if not each.daemon}
    children = " ".join(place.read_text() for place in Path("/proc/self/task").glob("*/children")).split()
    open_files = [os.path.realpath(place) for place in Path("/proc/self/fd").glob("*")]
    sockets = {("a socket", each) for each in open_files if "/socket:" in each}
    return threads | {("a process", each) for each in children} | sockets


def pytest_runtest_logstart(nodeid: str) -> None:
    (FOLDER / "running").write_text(nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    (FOLDER / "running").write_text("")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """End where Python would wait for what tests left behind."""
    if ended and (FOLDER / "left.json").exists():
        if (coverage := sys.modules.get("coverage")) and (measuring := coverage.Coverage.current()):
            measuring.stop()
            measuring.save()
        sys.stdout.flush()
        os._exit(int(ended[0].exitstatus))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    ended.append(session)
    left: dict[str, str] = {}
    for each in _running() & made_by.keys():
        left[made_by[each]] = ", ".join(filter(None, [left.get(made_by[each], ""), each[0]]))
    if left:
        (FOLDER / "left.json").write_text(json.dumps(left))
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.copy().items()}
    loaded = {name: os.path.realpath(file) for name, file in files.items() if isinstance(file, str)}
    (FOLDER / "loaded.json").write_text(json.dumps(loaded))
