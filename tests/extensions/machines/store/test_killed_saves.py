"""A process is killed at any of its writes to the store: what was saved before is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.extensions.machines.store.restoring import restore_run
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace.git import Git
from tests.support.kills import is_killed
from tests.support.run_folders import STATES, contents, make_state

pytestmark = pytest.mark.real

SAVES = """
import os, sys
from pathlib import Path
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store
from tests.support.run_folders import STATES, make_state

place = Path(sys.argv[1])
run = RunFolder(place / "run")
run.path.mkdir()
descriptor = os.open(place / "saved", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
saver = RunSaver(Store.open(str(place / "store")), run, 1)
for number in range(STATES):
    make_state(run.path, number)
    os.write(descriptor, (saver.save(lambda: {}) + "\\n").encode())
"""


def killed(place: Path, at: int) -> bool:
    """Whether the program was killed at its write ``at``; if so, all that it had saved must be whole."""
    place.mkdir()
    was_killed = is_killed(SAVES, place, at=at)
    saved = (place / "saved").read_text().split() if (place / "saved").exists() else []
    assert was_killed == (len(saved) < STATES)
    again = place / "again"
    again.mkdir()
    store = Store.open(str(place / "store"))
    for number, manifest in enumerate(saved):
        make_state(again, number)
        restore_run(store, manifest, place / "restored")
        assert contents(place / "restored") == contents(again)
        Git(place / "restored/.snapshots", place).run("fsck", "--full", "--strict")
    require_continues(store, place, saved)
    return was_killed


def require_continues(store: Store, place: Path, saved: list[str]) -> None:
    """Another attempt saves what the killed one had in its folder."""
    run = RunFolder(place / "run")
    if run.path.exists():
        latest = RunSaver(store, run, 2, saved[-1] if saved else "").save()
        restore_run(store, latest, place / "restored")
        assert contents(place / "restored") == contents(run.path)


@pytest.mark.parametrize("at", [60, 120])
def test_saved_states_are_whole_after_a_kill(at: int, tmp_path: Path) -> None:
    assert killed(tmp_path / "place", at)
