"""What pytest saw, by its own ids, written when the session is over.

The variable names the file. Processes that the tests start, and those of pytest-xdist, do not have it.

``outcomes``: of tests, and of modules that could not be collected or were skipped as a whole; ``lacks``: the modules
that these could not import; ``failures``: how many pytest counted beside them, such as for a coverage threshold;
``limit``: the option that may end the session early, and ``cut_short``: whether it did; ``root``: where ids start.
"""

from __future__ import annotations

import json
import os
import re

import pytest

FILE = os.environ.pop("CODEX_MULTI_ROLE_OUTCOMES", "")
MISSING = re.compile(r"No module named '?([\w.]+)")
RANK = ("passed", "skipped", "failed")
outcomes: dict[str, str] = {}
lacks: dict[str, str] = {}
counted, limit, selects = 0, "", False
sessions: list[pytest.Session] = []


def _note(test: str, outcome: str) -> None:
    outcomes[test] = max(outcomes.get(test, "passed"), outcome, key=RANK.index)


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
        if found := MISSING.search(str(report.longrepr)):
            lacks[report.nodeid] = found[1]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    global counted  # noqa: PLW0603 - as above
    counted += report.failed and not hasattr(report, "wasxfail")
    is_part = hasattr(report, "context")  # of a test that reports itself as well: a subtest
    if report.failed or (not is_part and (report.skipped or (report.passed and report.when == "call"))):
        _note(report.nodeid, report.outcome)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if not (FILE and sessions):
        return
    (session,) = sessions
    is_ended = bool(session.shouldfail or session.shouldstop or session.exitstatus == pytest.ExitCode.INTERRUPTED)
    seen = {
        **{"outcomes": outcomes, "lacks": lacks, "failures": session.testsfailed - counted, "limit": limit},
        **{"cut_short": bool(limit) and (is_ended or selects)},
        "root": os.path.relpath(str(config.rootpath), str(config.invocation_params.dir)),
    }
    with open(FILE, "w", encoding="utf-8") as file:  # noqa: PTH123 - a plain text, also for an old Python
        json.dump(seen, file)
