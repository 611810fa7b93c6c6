"""A process that ends what a run started if the run's own process dies without a chance to do so.

After ``kill -9``, a crash or an out-of-memory kill, sandboxed tests and their child processes would otherwise run on
without a deadline. The guard reads a pipe that only the run's process holds open, and acts when it closes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from codex_multi_role.host.own_python import Lifetime, own_script, start
from codex_multi_role.host.processes import Family
from codex_multi_role.host.settings_files import holds_settings, without_settings
from codex_multi_role.workspace.created_files import created, unescaped
from codex_multi_role.workspace.paths import is_repository

PART = "guard"
HEAD = "HEAD"
SET_ASIDE = "set_aside"
WAIT_SECONDS = 10.0
_SCRIPT = """
import sys
sys.path += sys.argv[2:]
from codex_multi_role.lifecycle.process_guard import end_work_of
end_work_of(sys.argv[1])
"""


@contextmanager
def guarded(folder: Path) -> Iterator[int]:
    """Guard the processes that the caller starts for the run in ``folder``; yields the guard's pid.

    Every program of a run carries the run's mark, so one guard covers them all and no command gets slower. Raises
    `StorageError`.
    """
    places = [str(Path(module).parents[levels]) for module, levels in ((__file__, 2), (psutil.__file__, 1))]
    command = own_script(_SCRIPT, str(folder), *places)
    marked = Family.of_run(folder, PART).marked(os.environ)
    guard = start(command, Lifetime.STARTS_AFTER_US, environment=marked, folder=Path("/"))
    try:
        yield guard.pid
    finally:
        guard.kill()  # before its pipe closes: nothing is left to end
        with suppress(subprocess.TimeoutExpired):
            guard.communicate(timeout=WAIT_SECONDS)


def end_earlier_guard(folder: Path) -> None:
    """End the guard of a killed session, so that it cannot end what the next session starts."""
    Family.of_run(folder, PART).end()


def end_work_of(folder: str) -> None:
    """End all processes of the run in ``folder``, and set aside what they created that would steer the next run."""
    family = Family.of_run(Path(folder))
    for process in family.members():
        with suppress(psutil.Error):
            family.adopt(process.children(recursive=True))  # marked or not
    family.end()
    with suppress(OSError, ValueError, LookupError):
        _set_aside(Path(folder))


def _set_aside(folder: Path) -> None:
    record = json.loads((folder / "run.json").read_bytes())
    root = Path(record["workspace"])
    left_out = (folder, folder.parent)
    names = created(root, record["steering_absent"], record.get("steering_present", ()), left_out)
    for name in map(unescaped, names):
        found = _first_link(root, name) or root / name
        if os.path.lexists(found) and (name != HEAD or is_repository(root)):
            kept = folder / SET_ASIDE / found.relative_to(root)
            kept.parent.mkdir(parents=True, exist_ok=True)
            rest = without_settings(found.read_bytes()) if holds_settings(found) else None
            shutil.move(found, kept)
            if rest is not None:
                found.write_bytes(rest)


def _first_link(root: Path, name: str) -> Path | None:
    """The first symlink on the path; its target must not be touched."""
    ways = (root / each for each in reversed((Path(name), *Path(name).parents)))
    return next((way for way in ways if way != root and way.is_symlink()), None)
