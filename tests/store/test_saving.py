"""A run folder is saved as it is, again and again, and restored exactly so."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.run_folder import RunFolder
from codex_multi_role.store import RunSaver, Store, restore_run
from codex_multi_role.store.pieces import MAX_PIECE_BYTES, MAX_SMALL_BYTES, MIN_PIECE_BYTES
from tests.support.run_folders import contents

NAMES = st.sampled_from(["run.json", "events.jsonl", "one/events.jsonl", "one/turn_001/turn.json", "one/turn_001/new"])
SIZES = st.sampled_from([0, 1, 100, MAX_SMALL_BYTES, MAX_SMALL_BYTES + 1, MIN_PIECE_BYTES + 7, MAX_PIECE_BYTES + 5])
CHANGES = st.one_of(
    st.tuples(st.just("write"), NAMES, SIZES),
    st.tuples(st.just("replace"), NAMES, SIZES),
    st.tuples(st.just("append"), NAMES, SIZES),
    st.tuples(st.just("delete"), NAMES, st.just(0)),
    st.tuples(st.just("mode"), NAMES, st.sampled_from([0o600, 0o644, 0o755])),
    st.tuples(st.just("save"), NAMES, st.just(0)),
    st.tuples(st.just("another process"), NAMES, st.just(0)),
)


def change(folder: Path, kind: str, name: str, number: int) -> None:
    """Do one change of a run folder; ``number``: bytes, or a mode."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "write":
        path.write_bytes(os.urandom(number))
    elif kind == "replace":
        beside = path.with_name("beside")
        beside.write_bytes(os.urandom(number))
        beside.replace(path)
    elif kind == "append":
        with path.open("ab") as file:
            file.write(os.urandom(number))
    elif kind == "delete":
        path.unlink(missing_ok=True)
    elif kind == "mode" and path.exists():
        path.chmod(number)


@settings(max_examples=40)
@given(st.lists(CHANGES, max_size=25))
def test_every_saved_state_is_restored_as_it_was(changes: list[tuple[str, str, int]]) -> None:
    with TemporaryDirectory() as name:
        store, folder = Store.open(f"{name}/store"), RunFolder(Path(name) / "run")
        folder.path.mkdir()
        saver, saved = RunSaver(store, folder, 1), {}
        for kind, path, number in [*changes, ("save", "", 0)]:
            if kind == "save":
                saved[saver.save()] = contents(folder.path)
            elif kind == "another process":
                saver = RunSaver(store, folder, 2, saver.save())
            else:
                change(folder.path, kind, path, number)
        for manifest, expected in saved.items():
            restore_run(store, manifest, Path(name) / "restored")  # each over the one before
            assert contents(Path(name) / "restored") == expected
