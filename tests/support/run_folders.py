"""Run folders without a run: files as they are, and what of them is saved."""

from __future__ import annotations

from pathlib import Path
from random import Random

from codex_multi_role.extensions.machines.store.saved_files import select
from codex_multi_role.workspace import Snapshots, Workspace

Contents = dict[str, tuple[int, bytes]]


def contents(folder: Path) -> Contents:
    """The mode and the content of every file below ``folder`` that a store saves, and ``path/`` of every empty folder.

    What private repositories contain does not count: their objects travel in other files.
    """
    selection = select(folder)
    files = {path: (mode.mode, (folder / path).read_bytes()) for path, mode in selection.files.items()}
    everything = files | {f"{path}/": (0, b"") for path in selection.empty}
    private = tuple(f"{each}/" for each in selection.repositories)
    return {path: content for path, content in everything.items() if not path.startswith(private)}


STATES = 4


def make_state(folder: Path, number: int) -> None:
    """Bring a run folder from the state before to the state ``number``: the same content whenever it is made."""
    content = Random(number)
    with (folder / "events.jsonl").open("ab") as log:
        log.write(content.randbytes(3000 * (number + 1)))
    turn = folder / f"one/turn_{number:03d}"
    turn.mkdir(parents=True)
    for name in ("prompt.txt", "turn.json"):
        (turn / name).write_bytes(content.randbytes(5000))
    (folder / "run.json.new").write_bytes(content.randbytes(200))
    (folder / "run.json.new").replace(folder / "run.json")
    (folder / f"one/turn_{number - 1:03d}/turn.json").unlink(missing_ok=True)
    private = Snapshots(folder / ".snapshots", Workspace(folder / "one"))
    private.take()
