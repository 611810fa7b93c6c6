"""What pytest saw, by its own ids, written when the session is over.

The variable names the file. Processes that the tests start, and those of pytest-xdist, do not have it.

``outcomes``: of tests, and of modules that could not be collected or were skipped as a whole; ``lacks``: the modules
that these could not import; ``refused``: what the system denied to those that failed by it; ``counts``: the figures of
pytest's last line; ``failures``: how many pytest counted beside them, such as for a coverage threshold, and
``is_red_by_hook``: whether a hook has set the exit status of failed tests; ``limit``: the option that may end the
session early, and ``cut_short``: whether it did; ``root``: where ids start.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator
from errno import EACCES, EHOSTUNREACH, ENETDOWN, ENETUNREACH, EPERM, EROFS
from opcode import opmap

import pytest

FILE = os.environ.pop("CODEX_MULTI_ROLE_OUTCOMES", "")
MISSING = re.compile(r"No module named '?([\w.]+)")
RANK = ("passed", "skipped", "failed")
NOT_TESTS = ("", "warnings", "deselected")
OF_SOCKETS = {"accept", "bind", "connect", "connect_ex", "listen", "send", "sendall", "sendmsg", "sendto", "socket"}
OF_SOCKETS |= {"getpeername", "getsockname", "getsockopt", "recv", "recv_into", "recvfrom", "setsockopt", "shutdown"}
MAX_CAUSES = 20
OWN_FOLDERS = tuple(f"{os.path.realpath(each)}{os.sep}" for each in (".", os.environ.get("TMPDIR", ".")))
outcomes: dict[str, str] = {}
lacks: dict[str, str] = {}
refused: dict[str, str] = {}
counted, limit, selects = 0, "", False
sessions: list[pytest.Session] = []


def _note(test: str, outcome: str) -> None:
    outcomes[test] = max(outcomes.get(test, "passed"), outcome, key=RANK.index)


def _denied(error: BaseException) -> str:
    """What the system denied on the way to ``error``; empty if a test says so itself, by an assertion or an error."""
    chain = [] if isinstance(error, (AssertionError, pytest.fail.Exception)) else [error]
    for each in chain:  # it grows meanwhile
        if isinstance(each, OSError) and (what := _denied_by_system(each)):
            return what
        told = [each.__cause__, each.__context__ if isinstance(each, OSError) else None]
        told += each.exceptions if type(each).__name__ == "ExceptionGroup" else ()  # type: ignore[attr-defined]
        chain += [more for more in told if isinstance(more, BaseException)][: MAX_CAUSES - len(chain)]
    return ""


def _denied_by_system(error: OSError) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]:  # by Python code
        return ""
    names, is_forbidden = trace.tb_frame.f_code.co_names, error.errno in (EPERM, EACCES)
    if error.errno == EROFS or (is_forbidden and isinstance(error.filename, str) and not _is_own(error.filename)):
        return "files outside the workspace"
    is_unreachable = error.errno in (ENETUNREACH, ENETDOWN, EHOSTUNREACH) or type(error).__name__ == "gaierror"
    is_socket = is_unreachable or (is_forbidden and error.filename is None and OF_SOCKETS.intersection(names))
    return "sockets" if is_socket else ""


def _is_own(file: str) -> bool:
    return f"{os.path.realpath(file)}{os.sep}".startswith(OWN_FOLDERS)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None]:
    made = yield
    if call.excinfo is not None:
        # waits: for nothing: pytest's result is there
        made.get_result().denied = _denied(call.excinfo.value)  # type: ignore[attr-defined]


def pytest_exception_interact(call: pytest.CallInfo[object], report: pytest.CollectReport) -> None:
    if isinstance(report, pytest.CollectReport) and call.excinfo is not None:
        report.denied = _denied(call.excinfo.value)  # type: ignore[attr-defined]


def _note_denied(report: pytest.CollectReport | pytest.TestReport) -> None:
    if what := getattr(report, "denied", ""):
        refused[report.nodeid] = what


def _limit(config: pytest.Config) -> str:
    option = config.option
    for name in ("lf", "stepwise"):
        if getattr(option, name, False):
            return f"--{name}"
    return f"--maxfail={option.maxfail}" if getattr(option, "maxfail", 0) else ""


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    global limit, selects  # noqa: PLW0603 - a plugin is its module
    sessions.append(session)
    limit = _limit(session.config)
    plugin = session.config.pluginmanager.getplugin("lfplugin")
    selects = limit == "--lf" and bool(getattr(plugin, "lastfailed", None))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    global counted  # noqa: PLW0603 - as above
    counted += report.failed
    if report.nodeid and not report.passed:
        _note(report.nodeid, report.outcome)
        _note_denied(report)
        if found := MISSING.search(str(report.longrepr)):
            lacks[report.nodeid] = found[1]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    global counted  # noqa: PLW0603 - as above
    counted += report.failed and not hasattr(report, "wasxfail")
    if report.failed:
        _note_denied(report)
    is_part = hasattr(report, "context")  # of a test that reports itself as well: a subtest
    if report.failed or (not is_part and (report.skipped or (report.passed and report.when == "call"))):
        _note(report.nodeid, report.outcome)


def _counts(config: pytest.Config) -> dict[str, int]:
    """As the terminal reporter counts; empty without it."""
    stats = getattr(config.pluginmanager.getplugin("terminalreporter"), "stats", {})
    counted = {name: [r for r in found if getattr(r, "count_towards_summary", True)] for name, found in stats.items()}
    return {name: len(reports) for name, reports in counted.items() if reports and name not in NOT_TESTS}


class _OwnStatus(int):
    """Set by pytest: a hook that sets the same one replaces it."""


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.TESTS_FAILED:
        session.exitstatus = _OwnStatus(session.exitstatus)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if not (FILE and sessions):
        return
    (session,) = sessions
    is_own, is_red = isinstance(session.exitstatus, _OwnStatus), session.exitstatus == pytest.ExitCode.TESTS_FAILED
    session.exitstatus = pytest.ExitCode.TESTS_FAILED if is_own else session.exitstatus
    is_ended = bool(session.shouldfail or session.shouldstop or session.exitstatus == pytest.ExitCode.INTERRUPTED)
    seen = {
        **{"outcomes": outcomes, "lacks": lacks, "failures": session.testsfailed - counted, "limit": limit},
        **{"cut_short": bool(limit) and (is_ended or selects), "is_red_by_hook": is_red and not is_own},
        **{"refused": refused, "counts": _counts(config)},
        "root": os.path.relpath(str(config.rootpath), str(config.invocation_params.dir)),
    }
    with open(FILE, "w", encoding="utf-8") as file:  # noqa: PTH123 - a plain text, also for an old Python
        json.dump(seen, file)
