"""How long the tests of a project keep a flow that begins with a planner from its first prompt.

Two projects, in turn: one without tests, and one whose suite keeps a core busy for a minute. Each is started as a user
starts it, until the first prompt leaves for Codex, and stopped then. The exit code is 1 if the prompt of the second one
takes more than `MOST` times as long.

    python benchmarks/first_prompt.py [--runs 5]

Prints the medians of the seconds until the first prompt, and their ratio.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from datetime import datetime
from functools import partial
from pathlib import Path

from raw import kept_folder, medians, read_options

MOST = 1.3
STOPPED = 130
STUCK_SECONDS = 300
LOOK_SECONDS = 0.05
SUITE = """\
import time


def test_for_a_minute():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pass
"""
ROLES = {
    "version": 1,
    "roles": [
        {"name": "planner", "prompt_text": "Plan."},
        {"name": "writer", "prompt_text": "Write.", "behaviors": {"apply_files": True}},
    ],
}
ANSWER = [{"json": {"summary": "done"}}]
PLAYBOOK = {"name": "bench", "roles": {"planner": ANSWER, "writer": ANSWER}, "repeat_last": True}


def seconds_to_first_prompt(suite: str) -> float:
    folder = kept_folder()
    (folder / "roles").mkdir()
    for name, value in {"roles/catalog.yaml": ROLES, "playbook.yaml": PLAYBOOK}.items():
        (folder / name).write_text(json.dumps(value))
    (folder / "code.py").write_text("one = 1\n")
    if suite:
        (folder / "test_code.py").write_text(suite)
    options = ["--goal", "plan it", "--roles", "roles", "--playbook", "playbook.yaml", "--cycles", "1", "--quiet"]
    began = time.time()
    with subprocess.Popen(
        [sys.executable, "-m", "codex_multi_role", *options], cwd=folder, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            sent = _sent(folder / "runs/latest/planner/events.jsonl", run)
            run.send_signal(signal.SIGINT)
            _, said = run.communicate(timeout=STUCK_SECONDS)
        finally:
            run.kill()
    if suite and run.returncode != STOPPED:
        raise SystemExit(f"the run was not stopped: exit code {run.returncode}: {said}")
    return sent - began


def _sent(log: Path, run: subprocess.Popen[str]) -> float:
    """When the first turn was sent, as the wire log says."""
    while run.poll() is None or log.exists():
        for line in log.read_text().splitlines() if log.exists() else ():
            if '"turn/start"' in line and line.endswith("}"):
                return datetime.fromisoformat(json.loads(line)["at"]).timestamp()
        time.sleep(LOOK_SECONDS)
    raise SystemExit("the run ended without a prompt")


def main() -> None:
    options = read_options(__doc__, 5)
    suites = {"without tests": "", "with a suite of 60 s": SUITE}
    figures = medians({name: partial(seconds_to_first_prompt, suite) for name, suite in suites.items()}, options.runs)
    without, ratio = figures["without tests"], figures["with a suite of 60 s"] / figures["without tests"]
    for name, seconds in figures.items():
        print(f"{name:<22}{seconds:7.3f} s  {seconds / without:.2f}")
    sys.exit(ratio > MOST)


if __name__ == "__main__":
    main()
