"""What many pieces and many roles cost our own process: its memory and its processor time.

- an answer in 200,000 pieces, against the same answer in 200, and against a script that only reads the same messages
  from one pipe (``raw.py``);
- 32 roles at once, each with an answer in 6,250 pieces, against one such role.

Ours is the command, run folder, journal and all, in a process of its own; Codex and the model are not counted. Memory
is the most that was ever resident. A thousand turns in one run are in ``long_run.py``.

    python benchmarks/load.py

Exits with 1 when 200,000 pieces take more than 1.25 times the memory of 200 or more than twice the processor time of
the script, or when each of the 32 roles takes more than 2 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from raw import RawRole, provider

from codex_multi_role.codex.codex_settings import app_server_argv
from codex_multi_role.codex.locator import find_codex

if TYPE_CHECKING:
    from codex_multi_role.playbook import Playbook

PIECES, FEW_PIECES = 200_000, 200
ROLES = 32
LEAD, ROLE = "lead", "role_00"
CYCLES_USED_UP = 1
MEMORY_MAY_GROW = 1.25
OF_THE_SCRIPT = 2.0
MEGABYTES_A_ROLE = 2.0
MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Cost:
    """Of one process: megabytes at most and processor seconds; ``logs``: megabytes of what Codex said, as kept."""

    memory: float
    processor: float
    logs: float = 0.0


def own_cost() -> Cost:
    """Of this process so far."""
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    return Cost(int(peak[1]) / 1024, time.process_time())


def ours(roles: int, characters: int, pieces: int) -> Cost:
    """A run in which ``roles`` work at once, after a lead that they all depend on."""
    import yaml  # here, like the playbook: the processes that are measured have no use for it

    from codex_multi_role.playbook import PlaybookServer

    names = [f"role_{number:02d}" for number in range(roles)]
    entries = [{"name": name, "prompt_text": "Say it.", "depends_on": [LEAD]} for name in names]
    catalog = {"version": 1, "roles": [{"name": LEAD, "prompt_text": "Begin."}, *entries]}
    with tempfile.TemporaryDirectory() as name, PlaybookServer(playbook(names, characters, pieces)) as server:
        folder = Path(name)
        (folder / "roles").mkdir()
        (folder / "roles" / "catalog.yaml").write_text(yaml.safe_dump(catalog))
        options = ["run", "--goal", "carry the load", "--cycles", "1", "--no-run-tests", "--quiet"]
        flags = [part for setting in provider(server.base_url) for part in ("-c", setting)]
        cost = measured(["--command", *options, *flags], folder)
        logs = sum(path.stat().st_size for path in folder.glob("runs/latest/*/events.jsonl"))
        return Cost(cost.memory, cost.processor, logs / MEGABYTE)


def script(characters: int, pieces: int) -> Cost:
    """One pipe, and nothing kept."""
    from codex_multi_role.playbook import PlaybookServer

    with tempfile.TemporaryDirectory() as name, PlaybookServer(playbook([ROLE], characters, pieces)) as server:
        return measured(["--script", server.base_url], Path(name))


def playbook(names: list[str], characters: int, pieces: int) -> Playbook:
    from codex_multi_role.playbook import Playbook

    said = {"text": json.dumps({"summary": "done", "words": "word " * (characters // 5)}), "deltas": pieces}
    return Playbook.model_validate(
        {"name": "load", "roles": {LEAD: [{"json": {"summary": "begin"}}], **{name: [said] for name in names}}}
    )


def measured(arguments: list[str], folder: Path) -> Cost:
    """What this file costs with ``arguments``, in a process of its own that tells it in the end."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments], cwd=folder, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{arguments[:2]} ended with {done.returncode}: {done.stdout}")
    return Cost(*json.loads(done.stdout.splitlines()[-1]))


def run_command(arguments: list[str]) -> None:
    """``codex-multi-role`` in this process."""
    from codex_multi_role.cli.main import main as codex_multi_role

    sys.argv = ["codex-multi-role", *arguments]
    if (code := codex_multi_role()) != CYCLES_USED_UP:
        sys.exit(f"codex-multi-role ended with {code}")


def run_script(base_url: str) -> None:
    role = RawRole(app_server_argv(find_codex(None, os.environ), provider(base_url)), Path.cwd(), ROLE)
    role.open()
    role.turn(1, "Say it.")
    role.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("--script", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.command or options.script:
        run_command(options.command) if options.command else run_script(options.script)
        cost = own_cost()
        print(json.dumps([cost.memory, cost.processor]))
        return
    sys.exit(0 if report(measure()) else 1)


def measure() -> dict[str, Cost]:
    answer, share = 4 * PIECES, PIECES // ROLES
    return {
        f"{FEW_PIECES} pieces": ours(1, answer, FEW_PIECES),
        f"{PIECES} pieces": ours(1, answer, PIECES),
        "the same, script": script(answer, PIECES),
        "1 role": ours(1, 4 * share, share),
        f"{ROLES} roles": ours(ROLES, 4 * share, share),
    }


def report(costs: dict[str, Cost]) -> bool:
    """Print the table; returns whether the aims are met, each of them."""
    print(f"{'':<20}{'memory, MB':>12}{'CPU, s':>10}{'wire logs, MB':>16}")
    for name, cost in costs.items():
        print(f"{name:<20}{cost.memory:>12.1f}{cost.processor:>10.2f}{cost.logs:>16.1f}")
    few, many, least, one, all_roles = costs.values()
    aims = [
        (f"memory, {PIECES} pieces / {FEW_PIECES}", many.memory / few.memory, MEMORY_MAY_GROW),
        (f"CPU of {PIECES} pieces / the script's", (many.processor - few.processor) / least.processor, OF_THE_SCRIPT),
        ("MB each role more", (all_roles.memory - one.memory) / (ROLES - 1), MEGABYTES_A_ROLE),
    ]
    for name, figure, most in aims:
        print(f"{name:<41}{figure:.2f} (at most {most:.2f}: {'met' if figure <= most else 'missed'})")
    return all(figure <= most for _, figure, most in aims)


if __name__ == "__main__":
    main()
