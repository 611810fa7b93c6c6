"""GitHub Actions: annotations as workflow commands, and logs in which no foreign text is a command.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands: ``::error file=…,line=…::…``. The
runner also accepts the older ``##[error]…``, anywhere in a line, and blanks before ``::``
(``src/Runner.Common/ActionCommand.cs`` of actions/runner).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from codex_multi_role.host.spelling import printable
from codex_multi_role.run_folder.folder import PROGRAM

if TYPE_CHECKING:  # only for types: every command loads this module
    from codex_multi_role.integrations.ci.ended_run import Case, EndedRun

VARIABLE = "GITHUB_ACTIONS"
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
TOP_VARIABLE = "GITHUB_WORKSPACE"
BEGINS_COMMAND = re.compile(r"((?:^|[\r\n])\s*)::")
MOST_OF_A_KIND = 10
"""Maximum number of errors, and of warnings, that GitHub shows per step."""


def runs_here(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is part of a GitHub workflow."""
    return environment.get(VARIABLE) == "true"


def run_annotations(run: EndedRun, top: Path | None) -> Iterator[str]:
    """Yield workflow commands, one per line: the run's failure, its failing tests, its warnings.

    ``top`` is the checkout; places outside it are left out, because GitHub could not show them.
    """
    if run.exit_code != 0:
        text = "\n".join([f"{run.headline} ({run.meaning})", *run.next_steps()])
        yield command("error", text, title=f"{PROGRAM}: {run.outcome}")
        for case in run.tests.red[: MOST_OF_A_KIND - 1] if run.tests else []:
            yield _failing_test(run, case, top)
    for warning in list(dict.fromkeys(run.progress.warnings))[:MOST_OF_A_KIND]:
        yield command("warning", run.line(warning, 500), title=PROGRAM)


def _failing_test(run: EndedRun, case: Case, top: Path | None) -> str:
    text = run.line(case.message, 500) or "failed"
    return command("error", text, **_place(run, case, top), title=f"test {run.line(case.full_name)}")


def _place(run: EndedRun, case: Case, top: Path | None) -> dict[str, str]:
    if not (case.file and top and run.folder):
        return {}
    path = Path(str(run.folder.record().get("workspace", ""))) / case.file
    try:
        place = {"file": str(path.resolve().relative_to(top.resolve()))}
    except (OSError, ValueError):  # not below the checkout
        return {}
    return {**place, "line": str(case.line)} if case.line else place


def command(name: str, text: str, **properties: str) -> str:
    """Build a printable workflow command; text and properties are escaped as in GitHub's own toolkit."""
    rendered = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return harmless_within(printable(f"::{name}{f' {rendered}' if rendered else ''}::{_data(text)}"))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def harmless(text: str) -> str:
    """Change lines of ``text`` that the runner would execute as commands."""
    return BEGINS_COMMAND.sub(r"\1: :", harmless_within(text))


def harmless_within(line: str) -> str:
    """Change the older form of a command, which counts anywhere in a line."""
    return line.replace("##[", "## [")
