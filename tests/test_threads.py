"""Every thread of a run has a name, and something that ends it: none outlives the run."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from codex_multi_role import run
from tests.support.teams import Record, fan, say, solver

pytestmark = pytest.mark.real

OURS = {
    r"codex-start_\d+": "a start: every request of it has a deadline (codex/client.py)",
    r"codex-(stdout|stderr)-\d+": "reads a pipe: ends with it, and so with the child (codex/transport.py)",
    r"codex-stop": "the end of a child: GRACE_SECONDS a step, and awaited for STOP_SECONDS (codex/fleet.py)",
    r"codex-databases": "MAKING_SECONDS, and killed with the run (codex/warm_home.py)",
    r"playbook": "waits for connections; woken by the server's end (playbook/loopback.py)",
    r"playbook-connection": "QUIET_CONNECTION_SECONDS; closed by the server's end (playbook/loopback.py)",
    r"recording|replay": "as playbook: it stands in its place",
    r"(recording|replay)-connection": "as playbook-connection, and QUIET_SECONDS (extensions/replays/upstream.py)",
    r"item_\d+": "the steps of one item, each with its deadlines (engine/scheduler.py)",
    r"role_\d+": "the turns of one role, each with its deadlines (engine/scheduler.py)",
    r"Thread-\d+": "watchdog's, in a run that is long enough to watch; ends with its observer (host/watched_files.py)",
    r"role-files": "looks every LOOK_SECONDS whether the run has ended (lifecycle/live_roles.py)",
    r"store_\d+": "files, and requests with REQUEST_SECONDS (store/remote_objects.py)",
    r"search_\d+": "one search provider, with its time limit (extensions/research/search_providers.py)",
    r"mutant_\d+": "tests on mutants, each run with its deadline (extensions/test_generation/kill_matrix.py)",
    r"python_\d+": "asks the project's Python, which has ANSWER_SECONDS (lifecycle/definitions.py)",
    r"sandbox_\d+": "tries the sandbox, which has PROBE_SECONDS, and ends with the run (lifecycle/sandbox_probe.py)",
    r"telemetry-end": "DELIVERY_SECONDS a request, CLOSING_SECONDS in all (extensions/telemetry/pipeline.py)",
    r"flow": "the steps of the run, each with its deadlines (engine/durable_run.py)",
}
"""By name, what bounds the thread."""
EXPECTED = (
    "codex-start_",
    "codex-stdout-",
    "codex-stderr-",
    "codex-databases",
    "playbook-connection",
    "item_",
    "role_",
    "flow",
)
ENDING_SECONDS = 5.0


def new_since(before: set[threading.Thread]) -> set[threading.Thread]:
    return set(threading.enumerate()) - before


def test_every_thread_of_a_run_is_known_and_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    everybody: Record = {"id": "all", "ask": "*"}
    team = solver(tmp_path, [fan(["a", "b"], concurrency=2), everybody], [say()] * 3)
    before = set(threading.enumerate())
    seen: list[threading.Thread] = []
    begin = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        seen.append(thread)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    report = run(team.options(flow="own"))
    assert report.outcome == "success", report
    for each in new_since(before):  # one that has nothing left to do may not have got round to ending
        each.join(ENDING_SECONDS)
    assert [each.name for each in new_since(before)] == []
    unknown = [each for each in seen if not any(re.fullmatch(name, each.name) for name in OURS)]
    assert {each.name for each in unknown} == set()
    names = " ".join(each.name for each in seen)
    assert [name for name in EXPECTED if name not in names] == []
