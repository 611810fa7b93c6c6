"""What a fan-out over processes of its own costs: one turn of 200 ms in each of 16 Codex processes, all at once.

*Ours* is ``codex-multi-role`` with a flow of one step, ``for_each`` of 16 items, ``concurrency: 16``, run folder,
journal and all. The raw driver is a script with 16 pipes that keeps, checks and recovers nothing; it starts the
processes in parallel, each in a Codex home of its own, *default* with no flags but the model's, *lean* with ours.

With its default flags Codex asks a public host for plugins (``git ls-remote``) at every start, and runs the user's
login-shell files for every thread. Nothing may leave the machine here: a proxy on a closed port refuses the first at
once, so they cost no waiting. What the second costs is the machine's own: long shell files slow the default driver.

    python benchmarks/fanout.py [--runs 7]

Prints medians of whole-process wall time, taken in turn, and the ratios with and without our start-up (the time until
Python has imported what the command needs). Exits with 1 when ours takes more than 0.40 of the default driver's time,
or, start-up apart, more than 1.15 of the lean one's.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from raw import IMPORTS, RawRole, at_once, medians, provider, timed

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.codex.settings import app_server_argv

PROCESSES = 16
OF_THE_DEFAULT = 0.40
OF_THE_LEAN = 1.15
ROLE = "worker"
PROMPT = "Say what comes next. " * 40
ANSWER = {"json": {"summary": "one more step"}, "deltas": 1, "delay_seconds": 0.2}
NOWHERE = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
CATALOG = {"version": 1, "roles": [{"name": ROLE, "prompt_text": PROMPT}]}
FLOW = {"steps": [{"ask": ROLE, "for_each": list(range(PROCESSES)), "concurrency": PROCESSES}]}


def raw(base_url: str, *, lean: bool) -> None:
    """The raw driver, in this process."""
    codex, settings = find_codex(None, os.environ), provider(base_url)
    plain = [str(codex), "app-server", *(part for setting in settings for part in ("-c", setting))]
    argv = app_server_argv(codex, settings) if lean else plain

    def take_turn(role: RawRole) -> None:
        role.open()
        role.turn(1, PROMPT)

    with tempfile.TemporaryDirectory() as name:
        roles = [RawRole(argv, Path(name), ROLE, f"{ROLE}.{number}", NOWHERE) for number in range(PROCESSES)]
        at_once(take_turn, roles)
        at_once(RawRole.close, roles)


def ours(base_url: str) -> float:
    """The wall seconds of our command, in a folder that holds the role and the flow."""
    import yaml  # here: the raw driver has no use for it

    flags = [part for setting in provider(base_url) for part in ("-c", setting)]
    goal = ["--goal", "measure the fan-out", "--flow", "fan", "--no-run-tests", "--quiet"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "roles" / "flows").mkdir(parents=True)
        (folder / "roles" / "catalog.yaml").write_text(yaml.safe_dump(CATALOG))
        (folder / "roles" / "flows" / "fan.yaml").write_text(yaml.safe_dump(FLOW))
        return timed([sys.executable, "-m", "codex_multi_role", *goal, *flags], 0, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--raw", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--lean", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.raw:
        raw(options.raw, lean=options.lean)
        return
    from codex_multi_role.playbook import Playbook, PlaybookServer  # here: the raw driver has no use for it

    playbook = Playbook.model_validate({"name": "fan", "roles": {ROLE: [ANSWER]}, "repeat_last": True})
    with PlaybookServer(playbook) as server:
        figures = measure(server.base_url, options.runs)
    sys.exit(0 if report(figures) else 1)


def measure(base_url: str, runs: int) -> dict[str, float]:
    driver = [sys.executable, __file__, "--raw", base_url]
    return medians(
        {
            "raw, default": partial(timed, driver, 0),
            "raw, lean": partial(timed, [*driver, "--lean"], 0),
            "ours": partial(ours, base_url),
            "start-up": partial(timed, [sys.executable, "-c", IMPORTS], 0),
            "raw start-up": partial(timed, [sys.executable, __file__, "--help"], 0),
        },
        runs,
    )


def report(figures: dict[str, float]) -> bool:
    """Print the table; returns whether the aims are met."""
    for name, seconds in figures.items():
        print(f"{name:<14}{seconds:7.3f} s")
    apart = figures["ours"] - (figures["start-up"] - figures["raw start-up"])
    of_default, of_lean = figures["ours"] / figures["raw, default"], apart / figures["raw, lean"]
    print(f"ours / raw, default                      {of_default:.2f} (at most {OF_THE_DEFAULT:.2f})")
    print(f"ours / raw, lean                         {figures['ours'] / figures['raw, lean']:.2f}")
    print(f"(ours - its extra start-up) / raw, lean  {of_lean:.2f} (at most {OF_THE_LEAN:.2f})")
    return of_default <= OF_THE_DEFAULT and of_lean <= OF_THE_LEAN


if __name__ == "__main__":
    main()
