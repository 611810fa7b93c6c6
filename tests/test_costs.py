"""What twelve turns of the shipped roles cost, in counts that are the same on every machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from codex_multi_role.errors import ExitCode
from tests.limits.large import answering
from tests.support.console import environment
from tests.support.teams import Record, read_lines, say

pytestmark = pytest.mark.real

ROLES: dict[str, Record] = {
    "planner": {"tasks": [], "next_owner": "architect"},
    "architect": {},
    "implementer": {"files": []},
    "integrator": {"status": "CONTINUE"},
}
"""What each answers, beside `ANSWER`."""
ANSWER: Record = {"key_points": [], "analysis_md": None, "error": None}
CYCLES, TURNS = 3, 12
MOST_OWN_MODULES, MOST_OTHER_MODULES = 204, 300
"""Before the processes start: what is imported by then delays the first prompt."""
MOST_PROMPT_BYTES = 2_400
NOT_BEFORE_PROCESSES = {
    *("sqlite3", "asyncio", "jsonschema", "markdown_it", "importlib.metadata"),
    *("codex_multi_role.engine", "codex_multi_role.extensions.pages.report.page", "codex_multi_role.api.python_team"),
    *("codex_multi_role.steps.turn", "codex_multi_role.replies", "codex_multi_role.checks.tests"),
}
"""Slow to import, and needed only once the processes start, if at all."""
NEVER = {
    "codex_multi_role.lifecycle.forking",
    "codex_multi_role.playbook",
    "dbos",
    "psycopg",
    "sqlalchemy",
    "rich",
    "coverage",
    "pytest",
    "networkx",
    "opentelemetry",
    "uvicorn",
}
"""No part of a run with a journal of its own, without tests and without a terminal."""
COUNTED = """
import json, sys
from pathlib import Path
programs, statements, early, looks, early_looks = [], [], [], [], []

def watch(event, given):
    if event == "subprocess.Popen":
        programs.append(Path(str(given[0])).name)
    if event == "os.listdir" and given[0] in ("/proc", b"/proc"):
        looks.append(event)

sys.addaudithook(watch)
from codex_multi_role.cli.main import main
from codex_multi_role.host.importing import without_plugin_search

with without_plugin_search():  # as the command does
    from codex_multi_role.codex.fleet import Fleet
    from codex_multi_role.lifecycle.session import Session

begin, drive = Fleet.start, Session._drive

def start(*arguments):
    early.extend(sys.modules)
    early_looks.extend(looks)
    return begin(*arguments)

def driven(*arguments):
    from codex_multi_role.engine import journal_file

    def traced(path):
        connection = opened(path)
        connection.set_trace_callback(statements.append)
        return connection

    opened, journal_file._opened = journal_file._opened, traced
    return drive(*arguments)

Fleet.start, Session._drive = start, driven
code = main()
counts = [code, programs, statements, early, [*sys.modules], early_looks, looks]
Path("counts.json").write_text(json.dumps(counts))
"""


class Counts:
    """What a run of its own process counted, and the prompts that it sent."""

    def __init__(self, folder: Path) -> None:
        counted = json.loads((folder / "counts.json").read_text())
        self.code, programs, self.statements, self.early, self.modules, self.early_looks, self.looks = counted
        self.programs = Counter(programs)
        logs = (read_lines(folder / f"runs/latest/{role}/events.jsonl") for role in ROLES)
        sent = [entry["message"] for log in logs for entry in log if entry["direction"] == "out"]
        self.methods = Counter(message["method"] for message in sent if "method" in message)
        self.prompts = [_prompt(message) for message in sent if message.get("method") == "turn/start"]


def _prompt(message: Record) -> str:
    return "".join(str(part.get("text", "")) for part in message["params"]["input"])


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Counts:
    folder = tmp_path_factory.mktemp("counted")
    arguments = ["--goal", "count", "--cycles", str(CYCLES), "--no-run-tests", "--quiet"]
    with answering({role: [say(**ANSWER, **more)] * CYCLES for role, more in ROLES.items()}) as settings:
        flags = [part for setting in (*settings, 'model="counted"') for part in ("-c", setting)]
        subprocess.run(
            [sys.executable, "-c", COUNTED, *arguments, *flags], cwd=folder, env=environment(), timeout=60, check=True
        )
    return Counts(folder)


def test_run_imports_only_what_it_uses(counts: Counts) -> None:
    assert NOT_BEFORE_PROCESSES & {*counts.early} == set()
    assert NEVER & {*counts.modules} == set()
    own = [name for name in counts.early if name.startswith("codex_multi_role")]
    assert len(own) <= MOST_OWN_MODULES
    assert len(counts.early) - len(own) <= MOST_OTHER_MODULES


def test_run_starts_only_its_processes(counts: Counts) -> None:
    """Git: the workspace's state before and after each cycle, and around the files that its implementer submits.

    The shell waits for the end of a run that is killed. A first run on a machine starts one more Codex.
    """
    assert counts.code == ExitCode.GOAL_NOT_REACHED
    assert counts.programs.pop("codex") - len(ROLES) in (0, 1)
    assert counts.programs == {"git": 12, "sh": 1}


def test_run_looks_through_all_processes_only_at_its_end(counts: Counts) -> None:
    """For what its own processes left running. Some of these looks are shared."""
    assert not counts.early_looks
    assert 0 < len(counts.looks) <= 2 * len(ROLES) + 2


def test_turn_costs_one_request_and_two_statements(counts: Counts) -> None:
    each = ("initialize", "initialized", "account/read", "thread/start", "model/list")
    assert counts.methods == {"turn/start": TURNS, **dict.fromkeys(each, len(ROLES))}
    recorded = Counter(each.split()[0] for each in counts.statements if "steps " in each)
    assert recorded == dict.fromkeys(("SELECT", "INSERT"), TURNS + CYCLES)  # the files of each implementer's answer


def test_prompts_do_not_grow_with_the_run(counts: Counts) -> None:
    sizes = [len(prompt.encode()) for prompt in counts.prompts]
    assert len(sizes) == TURNS
    assert max(sizes) <= MOST_PROMPT_BYTES
