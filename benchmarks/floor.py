"""How much our whole command costs above the least that could do the same turns.

Four roles, three cycles, a model that answers at once, the same Codex flags. *Raw* is a script with four pipes: it
starts the processes in parallel, sends twelve turns one after the other and closes the pipes; it keeps, checks and
recovers nothing. *Raw, importing* also imports the libraries that read the command line and the definitions, before the
processes start, but uses none of them. *Ours* is ``codex-multi-role --goal … --cycles 3``, run folder, journal and all.

    python benchmarks/floor.py [--runs 7]

Prints medians of whole-process wall time, taken in turn, and of the time until the first prompt leaves for Codex, each
with its ratio to the raw driver's.
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
SAID = {
    **{"summary": "one more step", "key_points": [], "analysis_md": None, "error": None},
    **{"tasks": [], "next_owner": "architect", "files": [], "status": "CONTINUE"},
}
"""What every role may say: each takes its fields of it."""
ANSWER = {"json": SAID, "deltas": 1}


def raw(base_url: str) -> None:
    """The raw driver, in this process, whose working folder is empty."""
    argv = app_server_argv(find_codex(None, os.environ), provider(base_url))
    roles = [RawRole(argv, Path.cwd(), role) for role in ROLES]
    at_once(RawRole.open, roles)
    Path("first_prompt").write_text(str(time.time()))
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
        whole, first_prompts = measure(server.base_url, options.runs)
    report(whole, first_prompts)


def measure(base_url: str, runs: int) -> tuple[dict[str, float], dict[str, float]]:
    """The seconds of each driver: the whole, and until its first prompt."""
    commands = {driver: (raw_command(driver, base_url), 0, raw_first_prompt) for driver in DRIVERS}
    commands["ours"] = (ours(base_url), 1, our_first_prompt)
    first_prompts: dict[str, list[float]] = {driver: [] for driver in commands}

    def timed_from_start(driver: str) -> float:
        command, code, first_prompt = commands[driver]
        folder = kept_folder()
        began, seconds = time.time(), timed(command, code, folder)
        first_prompts[driver].append(first_prompt(folder) - began)
        return seconds

    whole = medians({driver: partial(timed_from_start, driver) for driver in commands}, runs)
    return whole, {driver: statistics.median(seconds[1:]) for driver, seconds in first_prompts.items()}


def raw_first_prompt(folder: Path) -> float:
    return float((folder / "first_prompt").read_text())


def our_first_prompt(folder: Path) -> float:
    """When the run in ``folder`` sent its first turn to Codex, as its wire log says."""
    from datetime import datetime  # here, as above

    log = folder / "runs/latest" / ROLES[0] / "events.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    sent = next(line["at"] for line in lines if line["message"].get("method") == "turn/start")
    return datetime.fromisoformat(sent).timestamp()


def raw_command(driver: str, base_url: str) -> list[str]:
    return [sys.executable, __file__, "--raw", driver, base_url]


def report(whole: dict[str, float], first_prompts: dict[str, float]) -> None:
    print(f"{'':<16}{'the whole':>18}{'first prompt':>18}")
    for driver, seconds in whole.items():
        prompt = first_prompts[driver]
        print(
            f"{driver:<16}{seconds:9.3f} s  {seconds / whole['raw']:5.2f}"
            f"{prompt:9.3f} s  {prompt / first_prompts['raw']:5.2f}"
        )


if __name__ == "__main__":
    main()
