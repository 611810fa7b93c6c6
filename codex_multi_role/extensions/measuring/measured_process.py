"""The processes that run tests under measurement, and the notes that they leave."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from codex_multi_role.checks.environments import PLUGINS as OF_CHECKS
from codex_multi_role.checks.interpreter import Interpreter
from codex_multi_role.checks.junit_report import read_report
from codex_multi_role.extensions.measuring.imports import PLUGINS, import_folders, import_problem

PLUGIN = ("-p", "codex_multi_role_measuring")
OF_OTHERS = ("COVERAGE_", "COV_CORE_")
"""Prefixes of variables that start somebody else's measurement, or redirect ours."""


class MeasuredProcess:
    """``copy`` is the copy of the workspace ``root`` in which ``target`` (empty: no particular one) is measured.

    The notes of the process have their own folder below ``scratch``.
    """

    def __init__(self, scratch: Path, root: Path, copy: Path, target: str, python: Interpreter) -> None:
        self._folder = scratch / "measuring"
        self._folder.mkdir()
        self._root, self._copy, self._target, self._python = root, copy, target, python
        self._originals = dict.fromkeys(filter(None, (root, python.project)))

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """``given``, extended so that any Python finds our pytest plugins, and the project's code in the copy.

        A package may be installed from the workspace itself: the copy's must be tested.
        """
        kept = {name: value for name, value in given.items() if not name.startswith(OF_OTHERS)}
        folders = import_folders(self._root, self._target, self._python.folders)
        places = [str(PLUGINS), str(OF_CHECKS), *(str(self._copy / each) for each in folders), given.get("PYTHONPATH")]
        return {**kept, "PYTHONPATH": ":".join(filter(None, places)), "CODEX_MULTI_ROLE_MEASURING": str(self._folder)}

    def prepare(self, excluded: Iterable[str] = ()) -> None:
        """Reset the notes before each start; the tests in ``excluded``, by pytest's id, will not run."""
        (self._folder / "excluded.json").write_text(json.dumps(list(excluded)))
        (self._folder / "running").write_text("")
        (self._folder / "loaded.json").unlink(missing_ok=True)

    def running(self) -> tuple[str, float]:
        """The id of the test in which the process ended, or empty, and for how many seconds it had been running."""
        try:
            test = read_report(self._folder / "running").decode("utf-8", "replace")
            return test, time.time() - (self._folder / "running").stat().st_mtime
        except (ValueError, OSError):
            return "", 0.0

    def noted(self, name: str) -> dict[str, str]:
        """The plugin's note of that name: what is loaded, or what tests left behind; empty without one."""
        try:
            found = json.loads(read_report(self._folder / name))
            return {str(key): str(value) for key, value in found.items()}
        except (ValueError, AttributeError):
            return {}

    @property
    def started_another(self) -> bool:
        """Whether the tests started another Python, which may have executed lines of the target that nobody counted."""
        return (self._folder / "other_python").exists()

    def import_problem(self, unseen: Collection[str] = ()) -> str:
        """Why the figures are not the copy's; empty if no such reason is found.

        ``unseen``: files of which coverage.py saw no line executed.
        """
        if not self._target:
            return ""
        files = self.noted("loaded.json")  # empty if the process ended earlier, which reports that itself
        return import_problem(files, self._originals, self._copy, self._target, self._python.folders, unseen)
