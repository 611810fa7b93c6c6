"""One process that runs tests under measurement: what it is told, and what it leaves behind."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from codex_multi_role.checks.imports import PLUGINS, import_folders, import_problem
from codex_multi_role.checks.interpreter import Interpreter
from codex_multi_role.checks.junit_report import read_report

PLUGIN = ("-p", "codex_multi_role_measuring")
OF_OTHERS = ("COVERAGE_", "COV_CORE_")
"""How variables begin that start a measurement of somebody else's, or redirect ours."""


class MeasuredProcess:
    """``copy`` is that of the workspace ``root``, in which ``target`` (empty: nothing in particular) is measured.

    Its notes are in a folder of their own below ``scratch``.
    """

    def __init__(self, scratch: Path, root: Path, copy: Path, target: str, python: Interpreter) -> None:
        self._folder = scratch / "measuring"
        self._folder.mkdir()
        self._root, self._copy, self._target, self._python = root, copy, target, python
        self._originals = dict.fromkeys(filter(None, (root, python.project)))

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """``given``, in which any Python finds our plugins for pytest, and of the project what is in the copy.

        A package of the workspace may be installed from there: the copy's is the one to be tested.
        """
        kept = {name: value for name, value in given.items() if not name.startswith(OF_OTHERS)}
        folders = import_folders(self._root, self._target, self._python.folders)
        places = [str(PLUGINS), *(str(self._copy / each) for each in folders), given.get("PYTHONPATH")]
        return {**kept, "PYTHONPATH": ":".join(filter(None, places)), "CODEX_MULTI_ROLE_MEASURING": str(self._folder)}

    def prepare(self, excluded: Iterable[str] = ()) -> None:
        """Before each start: no test is running; those in ``excluded``, by pytest's id, will not."""
        (self._folder / "excluded.json").write_text(json.dumps(list(excluded)))
        (self._folder / "running").write_text("")
        (self._folder / "loaded.json").unlink(missing_ok=True)

    def running(self) -> tuple[str, float]:
        """The id of the test in which the process ended, or empty, and for how long it had been running."""
        try:
            test = read_report(self._folder / "running").decode("utf-8", "replace")
            return test, time.time() - (self._folder / "running").stat().st_mtime
        except (ValueError, OSError):
            return "", 0.0

    @property
    def started_another(self) -> bool:
        """Whether the tests started another Python, which may have executed lines of the target that nobody counted."""
        return (self._folder / "other_python").exists()

    def import_problem(self, unseen: Collection[str] = ()) -> str:
        """Why the figures are not the copy's; empty where nothing speaks against it.

        ``unseen``: files of which coverage.py saw no line being executed.
        """
        if not self._target:
            return ""
        try:
            loaded = json.loads(read_report(self._folder / "loaded.json"))
            files = {str(name): str(file) for name, file in loaded.items()}
        except (ValueError, AttributeError):
            return ""  # the process did not get that far, and says so by itself
        return import_problem(files, self._originals, self._copy, self._target, self._python.folders, unseen)
