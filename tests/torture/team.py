"""The run that is tortured: three roles, two cycles, and every way there is to change the workspace.

cycle 1   writer hands in a wrong program and its tests, patcher begins a log by itself, judge needs a repair turn
cycle 2   writer mends the program, patcher adds to its log by itself, judge says DONE
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from codex_multi_role.codex.settings import as_settings
from tests.teams import Record, TeamFolder, say

RUN_ID = "tortured"
CYCLES = 2
# pytest as the package would run it, without the plugins that happen to be installed: they are most of its start.
PYTEST = ["env", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]

ROLES: dict[str, Record] = {
    "writer": {"prompt_flags": {"allow_file_suggestions": True}, "behaviors": {"apply_files": True}},
    "patcher": {"prompt_flags": {"allow_write": True}},
    "judge": {"behaviors": {"can_finish": True}},
}

TESTS = "from double import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
WRONG = "def double(number):\n    return number + 2\n"
RIGHT = "def double(number):\n    return number * 2\n"
TOOL = "#!/bin/sh\necho new\n"
NEW_LOG = "*** Begin Patch\n*** Add File: doc/log.md\n+# Log\n+first cycle\n*** End Patch"
# Applied twice it leaves two lines: a turn that is taken again must begin where it began the first time.
MORE_LOG = "*** Begin Patch\n*** Update File: doc/log.md\n@@\n # Log\n+second cycle\n*** End Patch"

FIRST_FILES = [
    {"path": "double.py", "content": WRONG},
    {"path": "tests/test_double.py", "content": TESTS},
    {"path": "tool.sh", "content": TOOL},
]
PLAYS: dict[str, list[Record]] = {
    "writer": [
        say("wrote it", files=FIRST_FILES, analysis_md="# Why\n\nBecause."),
        say("mended it", files=[{"path": "double.py", "content": RIGHT}]),
    ],
    "patcher": [
        {"steps": [{"patch": NEW_LOG}, say("began the log")]},
        {"steps": [{"patch": MORE_LOG}, say("added to the log")]},
    ],
    "judge": [
        {"text": "I am not sure.", "repairs": [say("the tests are red", status="CONTINUE")]},
        say("the tests are green", status="DONE"),
    ],
}


def new_team(folder: Path) -> TeamFolder:
    """The team in ``folder``, with a workspace that holds a file of somebody's, and its permissions, already."""
    team = TeamFolder(folder, ROLES, PLAYS)
    tool = team.workspace / "tool.sh"
    tool.write_text("#!/bin/sh\necho old\n")
    tool.chmod(0o750)
    return team


def run_arguments(team: TeamFolder, base_url: str, run_id: str) -> list[str]:
    """The command line of the run; its model is the playbook server at ``base_url``, of another process."""
    table = {
        "name": "playbook",
        "base_url": base_url,
        "wire_api": "responses",
        "request_max_retries": 0,
        "stream_max_retries": 0,
    }
    settings = as_settings({"model_provider": "playbook", "model_providers.playbook": table})
    options = {
        "--goal": "double numbers",
        "--cycles": str(CYCLES),
        "--roles": str(team.folder / "roles"),
        "--workspace": str(team.workspace),
        "--run-id": run_id,
        "--model": "playbook",
        "--pytest-cmd": shlex.join(PYTEST),
    }
    given = [part for option in options.items() for part in option]
    return ["run", *given, *(part for each in settings for part in ("-c", each)), *common_arguments(team)]


def resume_arguments(team: TeamFolder, run_id: str) -> list[str]:
    """The command line that goes on with the run."""
    return ["resume", run_id, *common_arguments(team)]


def common_arguments(team: TeamFolder) -> list[str]:
    return ["--runs-dir", str(team.runs), "--quiet"]
