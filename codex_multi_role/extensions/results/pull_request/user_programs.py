"""``gh`` and ``glab`` as their user runs them in a terminal, with all settings; but nothing can be asked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from codex_multi_role.host.programs import program_path
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.workspace.commands import CommandResult, run_command

SECONDS = 120.0
ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
"""Variables by which git, started by a hook, would work on another repository."""
SILENT = {"GIT_TERMINAL_PROMPT": "0", "GH_PROMPT_DISABLED": "1", "NO_PROMPT": "1", "NO_COLOR": "1"}
ENGLISH = {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}
TELLING = ("fatal:", "error:", "remote: error:", " ! ")


@dataclass(frozen=True)
class UserPrograms:
    """Programs that run in the repository ``top``, none of them from a folder where models write."""

    top: Path
    redact: Callable[[str], str]

    def has(self, program: str) -> bool:
        return shutil.which(program, path=self._environment["PATH"]) is not None

    def run(self, argv: Sequence[str], seconds: float = SECONDS) -> CommandResult:
        return run_command(argv, self.top, self._environment, seconds, separate_errors=True)

    def complaint(self, done: CommandResult) -> str:
        """The most telling line that a program reported, without secrets; how it ended if it reported nothing."""
        if done.timed_out:
            return f"no end after {done.seconds:.0f} s"
        lines = [line for line in (*done.errors.splitlines(), *done.output.splitlines()) if line.strip()]
        first = lines[0] if lines else f"exit code {done.returncode}"
        return one_line(self.redact(next((line for line in lines if line.startswith(TELLING)), first)), 500)

    @cached_property
    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
        return {**inherited, **SILENT, **ENGLISH, "PATH": program_path(os.environ)}
