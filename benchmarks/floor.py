"""How much our whole command costs above the least that could do the same turns.

Four roles, three cycles, a model that answers at once, the same Codex flags. *Raw* is a script with four pipes: it
starts the processes in parallel, sends twelve turns one after the other and closes the pipes; it keeps, checks and
recovers nothing. *Raw, importing* also imports the libraries that read the command line and the definitions, before the
processes start, but uses none of them. *Ours* is ``codex-multi-role --goal … --cycles 3``, run folder, journal and all.

    python benchmarks/floor.py [--runs 7]

Prints medians of whole-process wall time, taken in turn, and their ratios; and of the time until our first prompt
leaves for Codex.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import sys
import time
from functools import partial
from pathlib import Path

from raw import RawRole, at_once, kept_folder, medians, provider, read_options, timed

from codex_multi_role.codex.codex_settings import app_server_argv
from codex_multi_role.codex.locator import find_codex

ROLES = ("planner", "architect", "implementer", "integrator")
CYCLES = 3
LIBRARIES = ("click", "pydantic", "yaml", "jinja2")
ANSWER = {"json": {"summary": "one more step", "status": "CONTINUE"}, "deltas": 1}


def raw(base_url: str) -> None:
    """The raw driver, in this process, whose working folder is empty."""
    argv = app_server_argv(find_codex(None, os.environ), provider(base_url))
    roles = [RawRole(argv, Path.cwd(), role) for role in ROLES]
    at_once(RawRole.open, roles)
    for cycle in range(CYCLES):
        for role in roles:
            role.turn(cycle + 1, "Say what comes next." * 40)
    at_once(RawRole.close, roles)


def ours(base_url: str) -> list[str]:
    flags = [part for setting in provider(base_url) for part in ("-c", setting)]
    goal = ["--goal", "measure the floor", "--cycles", str(CYCLES), "--no-run-tests", "--quiet"]
    return [sys.executable, "-m", "codex_multi_role", *goal, *flags]


def raw_importing(base_url: str) -> None:
    """The raw driver, and the imports."""
    for name in LIBRARIES:
        importlib.import_module(name)
    raw(base_url)


DRIVERS = {"raw": raw, "raw, importing": raw_importing}


def main() -> None:
    options = read_options(__doc__, 7, "DRIVER", "URL")
    if options.raw:
        driver, base_url = options.raw
        DRIVERS[driver](base_url)
        return
    from codex_multi_role.playbook import Playbook, PlaybookServer  # here: the raw driver has no use for it

    playbook = Playbook.model_validate(
        {"name": "bench", "roles": {role: [ANSWER] for role in ROLES}, "repeat_last": True}
    )
    with PlaybookServer(playbook) as server:
        figures = measure(server.base_url, options.runs)
    report(figures)


def measure(base_url: str, runs: int) -> dict[str, float]:
    first_prompts: list[float] = []

    def timed_ours() -> float:
        folder = kept_folder()
        began, seconds = time.time(), timed(ours(base_url), 1, folder)
        first_prompts.append(first_prompt(folder) - began)
        return seconds

    commands = {driver: partial(timed, raw_command(driver, base_url), 0) for driver in DRIVERS}
    figures = medians({**commands, "ours": timed_ours}, runs)
    return {**figures, "our first prompt": statistics.median(first_prompts[1:])}


def first_prompt(folder: Path) -> float:
    """When the run in ``folder`` sent its first turn to Codex, as its wire log says."""
    from datetime import datetime  # here, as above

    log = folder / "runs/latest" / ROLES[0] / "events.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    sent = next(line["at"] for line in lines if line["message"].get("method") == "turn/start")
    return datetime.fromisoformat(sent).timestamp()


def raw_command(driver: str, base_url: str) -> list[str]:
    return [sys.executable, __file__, "--raw", driver, base_url]


def report(figures: dict[str, float]) -> None:
    for name, seconds in figures.items():
        print(f"{name:<18}{seconds:7.3f} s  {seconds / figures['raw']:.2f}")


if __name__ == "__main__":
    main()
