"""How much our whole command costs above the least that could do the same turns.

Four roles, three cycles, a model that answers at once, the same Codex flags. *Raw* is a script with four pipes: it
starts the processes in parallel, sends twelve turns one after the other and closes the pipes; it keeps, checks and
recovers nothing. *Ours* is ``codex-multi-role --goal … --cycles 3``, run folder, journal and all.

    python benchmarks/floor.py [--runs 7]

Prints medians of whole-process wall time, in pairs taken in turn, and the ratio with and without our start-up (the
time until Python has imported what the command needs).
"""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from raw import IMPORTS, RawRole, at_once, medians, provider, read_options, timed

from codex_multi_role.codex.codex_settings import app_server_argv
from codex_multi_role.codex.locator import find_codex

ROLES = ("planner", "architect", "implementer", "integrator")
CYCLES = 3
ANSWER = {"json": {"summary": "one more step", "status": "CONTINUE"}, "deltas": 1}


def raw(base_url: str) -> None:
    """The raw driver, in this process."""
    argv = app_server_argv(find_codex(None, os.environ), provider(base_url))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        roles = [RawRole(argv, folder, role) for role in ROLES]
        at_once(RawRole.open, roles)
        for cycle in range(CYCLES):
            for role in roles:
                role.turn(cycle + 1, "Say what comes next." * 40)
        at_once(RawRole.close, roles)


def ours(base_url: str) -> list[str]:
    flags = [part for setting in provider(base_url) for part in ("-c", setting)]
    goal = ["--goal", "measure the floor", "--cycles", str(CYCLES), "--no-run-tests", "--quiet"]
    return [sys.executable, "-m", "codex_multi_role", *goal, *flags]


def main() -> None:
    options = read_options(__doc__, 7, "URL")
    if options.raw:
        raw(*options.raw)
        return
    from codex_multi_role.playbook import Playbook, PlaybookServer  # here: the raw driver has no use for it

    playbook = Playbook.model_validate(
        {"name": "bench", "roles": {role: [ANSWER] for role in ROLES}, "repeat_last": True}
    )
    with PlaybookServer(playbook) as server:
        figures = measure(server.base_url, options.runs)
    report(figures)


def measure(base_url: str, runs: int) -> dict[str, float]:
    commands = {
        "raw": ([sys.executable, __file__, "--raw", base_url], 0),
        "ours": (ours(base_url), 1),
        "start-up": ([sys.executable, "-c", IMPORTS], 0),
        "raw start-up": ([sys.executable, __file__, "--help"], 0),
    }
    return medians({name: partial(timed, *command) for name, command in commands.items()}, runs)


def report(figures: dict[str, float]) -> None:
    for name, seconds in figures.items():
        print(f"{name:<14}{seconds:7.3f} s")
    start_up = figures["start-up"] - figures["raw start-up"]
    print(f"ours / raw                         {figures['ours'] / figures['raw']:.2f}")
    print(f"(ours - its extra start-up) / raw  {(figures['ours'] - start_up) / figures['raw']:.2f}")


if __name__ == "__main__":
    main()
