"""What a fan-out over processes of its own costs: one turn of 200 ms in each of 16 Codex processes, all at once.

*Ours* is ``codex-multi-role`` with a flow of one step, ``for_each`` of 16 items, ``concurrency: 16``, run folder,
journal and all, in a project that has had a run before: from the second on its processes find what a new Codex home
begins with. The raw driver is a script with 16 pipes that keeps, checks and recovers nothing, each process in an empty
Codex home of its own:

- *lean*: with our flags, all started in parallel;
- *default*: with no flags but the model's, all started in parallel;
- *default, in turn*: the same, each started when the one before has its thread; then all turns at once.

With its default flags Codex asks a public host for plugins (``git ls-remote``) at every start, and runs the user's
login-shell files for every thread. Nothing may leave the machine here: a proxy on a closed port refuses the first at
once, so they cost no waiting. What the second costs is the machine's own: long shell files slow the default driver.

    python benchmarks/fanout.py [--runs 7]

Prints medians of whole-process wall time, taken in turn, and the ratios with and without our start-up (the time until
Python has imported what the command needs). Exits with 1 when ours takes more than 0.40 of either default driver's
time, or, start-up apart, more than 1.15 of the lean one's.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from raw import IMPORTS, RawRole, at_once, medians, provider, read_options, timed

from codex_multi_role.codex.codex_settings import app_server_argv
from codex_multi_role.codex.locator import find_codex

DEFAULT, IN_TURN, LEAN = "raw, default", "raw, default, in turn", "raw, lean"
PROCESSES = 16
OF_THE_DEFAULT = 0.40
OF_THE_LEAN = 1.15
ROLE = "worker"
PROMPT = "Say what comes next. " * 40
ANSWER = {"json": {"summary": "one more step"}, "deltas": 1, "delay_seconds": 0.2}
NOWHERE = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
CATALOG = {"version": 1, "roles": [{"name": ROLE, "prompt_text": PROMPT}]}
FLOW = {"steps": [{"ask": ROLE, "for_each": {"items": list(range(PROCESSES)), "concurrency": PROCESSES}}]}


def raw(base_url: str, driver: str) -> None:
    """The raw driver of that name, in this process."""
    codex, settings = find_codex(None, os.environ), provider(base_url)
    plain = [str(codex), "app-server", *(part for setting in settings for part in ("-c", setting))]
    argv = app_server_argv(codex, settings) if driver == LEAN else plain

    def start(number: int) -> RawRole:
        return RawRole(argv, Path.cwd(), ROLE, f"{ROLE}.{number}", NOWHERE)

    def take_turn(role: RawRole) -> None:
        role.turn(1, PROMPT)

    def open_and_take_turn(role: RawRole) -> None:
        role.open()
        role.turn(1, PROMPT)

    if driver == IN_TURN:
        roles = []
        for number in range(PROCESSES):
            roles.append(start(number))
            roles[-1].open()
        at_once(take_turn, roles)
    else:
        roles = list(map(start, range(PROCESSES)))
        at_once(open_and_take_turn, roles)
    at_once(RawRole.close, roles)


def ours(base_url: str, project: Path) -> float:
    """The wall seconds of our command, in a folder that holds the role and the flow."""
    flags = [part for setting in provider(base_url) for part in ("-c", setting)]
    goal = ["--goal", "measure the fan-out", "--flow", "fan", "--no-run-tests", "--quiet"]
    return timed([sys.executable, "-m", "codex_multi_role", *goal, *flags], 0, project)


def write_project(folder: Path) -> None:
    import yaml  # here: the raw driver has no use for it

    (folder / "roles" / "flows").mkdir(parents=True)
    (folder / "roles" / "catalog.yaml").write_text(yaml.safe_dump(CATALOG))
    (folder / "roles" / "flows" / "fan.yaml").write_text(yaml.safe_dump(FLOW))


def main() -> None:
    options = read_options(__doc__, 7, "DRIVER", "URL")
    if options.raw:
        raw(options.raw[1], options.raw[0])
        return
    from codex_multi_role.playbook import Playbook, PlaybookServer  # here: the raw driver has no use for it

    playbook = Playbook.model_validate({"name": "fan", "roles": {ROLE: [ANSWER]}, "repeat_last": True})
    with PlaybookServer(playbook) as server, tempfile.TemporaryDirectory() as project:
        write_project(Path(project))
        figures = measure(server.base_url, options.runs, Path(project))
    sys.exit(0 if report(figures) else 1)


def measure(base_url: str, runs: int, project: Path) -> dict[str, float]:
    def driver(name: str) -> Callable[[], float]:
        return partial(timed, [sys.executable, __file__, "--raw", name, base_url], 0)

    return medians(
        {
            DEFAULT: driver(DEFAULT),
            IN_TURN: driver(IN_TURN),
            LEAN: driver(LEAN),
            "ours": partial(ours, base_url, project),
            "start-up": partial(timed, [sys.executable, "-c", IMPORTS], 0),
            "raw start-up": partial(timed, [sys.executable, __file__, "--help"], 0),
        },
        runs,
    )


def report(figures: dict[str, float]) -> bool:
    """Print the table; returns whether the aims are met, each of them."""
    for name, seconds in figures.items():
        print(f"{name:<21}{seconds:7.3f} s")
    apart = figures["ours"] - (figures["start-up"] - figures["raw start-up"])
    print(f"ours / {LEAN:<34}{figures['ours'] / figures[LEAN]:.2f}")
    ratios = [
        (f"ours / {DEFAULT}", figures["ours"] / figures[DEFAULT], OF_THE_DEFAULT),
        (f"ours / {IN_TURN}", figures["ours"] / figures[IN_TURN], OF_THE_DEFAULT),
        (f"(ours - its extra start-up) / {LEAN}", apart / figures[LEAN], OF_THE_LEAN),
    ]
    for name, ratio, most in ratios:
        print(f"{name:<41}{ratio:.2f} (at most {most:.2f}: {'met' if ratio <= most else 'missed'})")
    return all(ratio <= most for _, ratio, most in ratios)


if __name__ == "__main__":
    main()
