"""A run to be forked, and what is in its folders before and after."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Unpack

import pytest

from codex_multi_role import RunReport, fork
from codex_multi_role.option_keywords import ForkKeywords
from tests.support.scripted_codex import codex_replaced
from tests.support.teams import WRITER, Record, TeamFolder, say, with_flow
from tests.support.workspaces import write_files

CHORES = "chmod +x tool.sh; rm old.txt; ln -s a.txt link; mkdir empty; echo junk > ignored.log; echo 2 > b/deep.txt"
LOOP: list[Record] = [{"when": "steps.judge.visits >= 3", "end": "judged"}, {"to": "build"}]
STEPS: list[Record] = [
    {"ask": "plan"},
    {"ask": "build"},
    {"id": "chores", "check": "command", "with": {"argv": ["sh", "-c", CHORES], "expect": [0, 1]}},
    {"ask": "judge", "next": LOOP},
]


def builders(folder: Path, steps: list[Record] | None = None, **more: object) -> TeamFolder:
    """A plan, then building and judging three times over; every build rewrites ``a.txt`` and a file of its own."""
    builds = [
        say(f"build {n}", files=[{"path": "a.txt", "content": f"{n}\n"}, {"path": f"new{n}.txt", "content": ""}])
        for n in (1, 2, 3)
    ]
    judges = [say(f"judge {n}") for n in (1, 2, 3)]
    team = TeamFolder(
        folder,
        {"plan": {}, "build": WRITER, "judge": {}},
        {"plan": [say("plan 1")], "build": builds, "judge": judges},
    )
    files = {".gitignore": "*.log\n", "tool.sh": "#!/bin/sh\n", "old.txt": "old\n", "b/deep.txt": "1"}
    write_files(team.workspace, files)
    return with_flow(team, {"steps": steps or STEPS, **more})


def forked(team: TeamFolder, start: str | None, run: str = "latest", **changes: Unpack[ForkKeywords]) -> RunReport:
    """Fork ``run`` from ``start`` (``step:visit``) and run the fork to its end. ``changes``: options that differ."""
    team.events.clear()
    return fork(run, runs_dir=team.runs, start=start, changes=changes, on_event=team.events.append)


Parent = tuple[TeamFolder, RunReport]
"""A team after its run."""


Built = tuple[TeamFolder, RunReport, Path]
"""A team after its run, and a copy of its folder."""


@pytest.fixture(scope="session")
@codex_replaced()
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The run of the team of `builders`."""
    folder = tmp_path_factory.mktemp("parent")
    team = builders(folder)
    report = team.run(flow="own")
    return team, report, shutil.copytree(folder, tmp_path_factory.mktemp("copy") / "parent", symlinks=True)


@pytest.fixture
def parent(built: Built) -> Iterator[Parent]:
    """The team of `builders` after its run, which is done once: afterwards its folder is as it was again."""
    team, report, copy = built
    with restored(team.folder, copy):
        yield deepcopy(team), report


@contextmanager
def restored(folder: Path, copy: Path) -> Iterator[None]:
    """Afterwards ``folder`` is as ``copy`` again."""
    yield
    shutil.rmtree(folder)
    shutil.copytree(copy, folder, symlinks=True)
