"""Where a fork works: in a new folder with the recorded state or, if none was recorded, in an existing folder."""

from __future__ import annotations

import re
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.errors import UsageError
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.workspace import FORK_MARK, project_name

RANDOM_PART = re.compile(r"_([0-9a-f]{8})$")


@dataclass(frozen=True)
class ForkWorkspace:
    """``original``: the parent's workspace, which stays unchanged; ``given``: from ``--workspace``.

    ``tree``: the recorded state of the workspace, empty if nothing in the run could change it.
    """

    original: Path
    given: Path | None
    tree: str

    def check(self) -> Path:
        """An existing folder that must be writable. Raises `UsageError`."""
        if not self.tree:
            return self.given or self.original
        if self.given is not None:
            _require_fresh(self.given)
            if self.given.resolve().is_relative_to(self.original):
                raise UsageError(
                    f"{self.given} is inside the workspace of the run that is forked",
                    "A fork does not change that workspace: name a folder outside of it.",
                )
        wanted = (self.given or self.original).absolute()
        return next(parent for parent in wanted.parents if parent.exists())

    def require_state(self, changes_workspace: bool) -> None:
        """Raise `UsageError` if the fork would change a workspace whose state was never recorded."""
        if changes_workspace and not self.tree and self.given is None:
            raise UsageError(
                f"no state of {self.original} was recorded: nothing in the run could change it, but the fork can",
                "Name the folder that it may change with --workspace: the same folder or a copy of it.",
            )

    def make(self, run_id: str, undo: ExitStack) -> Path:
        """The fork's workspace, empty if its files are still to be restored. Raises `UsageError`, `StorageError`."""
        if not self.tree:
            return (self.given or self.original).resolve()
        path = self.given.absolute() if self.given else self._beside(run_id)
        _require_fresh(path)
        undo.callback(_empty, path)
        for folder in (path, *path.parents):
            if folder.exists():
                break
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
        return make_folder(path).resolve()

    def _beside(self, run_id: str) -> Path:
        random_part = RANDOM_PART.search(run_id)
        return (
            self.original.parent
            / f"{project_name(self.original)}{FORK_MARK}{random_part[1] if random_part else run_id}"
        )

    def in_words(self, path: Path, nested: list[str]) -> str:
        """What to know about the workspace ``path``; ``nested``: the repositories that it lacks."""
        if not self.tree:
            return f"no workspace state was recorded (nothing could change it): {path} is used in its current state"
        without = f" and nested repositories: {', '.join(nested)}" if nested else ""
        return f"the workspace {path} is restored, without .git, caches and files that git ignores{without}"


def _require_fresh(path: Path) -> None:
    try:
        if any(path.iterdir()):
            raise UsageError(f"the folder {path} is not empty", "Name an empty or new folder with --workspace.")
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{path} cannot be the workspace: {error.strerror}") from error


def _empty(path: Path) -> None:
    for child in path.iterdir() if path.is_dir() else ():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child, ignore_errors=True)
        else:
            child.unlink(missing_ok=True)
