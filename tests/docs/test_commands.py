"""Every command of the README and of the documentation works as printed.

The commands of a page are given in its order, in one folder. Those that need a model find a scripted one, or no login.
A flow's playbook is played by a test of its system and by the long tests here; otherwise its command becomes a dry
run, as one with automatic answers does, which `tests/test_newcomer.py` gives.

Costs: every command of the pages is a process.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from codex_multi_role.playbook import Playbook, PlaybookServer
from tests.docs.newcomer import give
from tests.docs.pages import EXTENSIONS, MANY_MACHINES, OPERATION, Block, blocks, commands, page_names
from tests.support.git_hosts import scripted_host
from tests.support.serving import listening
from tests.support.teams import Record

pytestmark = pytest.mark.extensions
LOCAL_PROVIDER = "http://127.0.0.1:8080/v1"
SERVER = "codex-multi-role serve"
LOGIN = "codex-multi-role codex login"
DOCTOR = "codex-multi-role doctor"
NO_GOAL_REACHED = "codex-multi-role --playbook roman-numerals --workspace again --cycles 1"
NEEDS_LOGIN = 'codex-multi-role --goal "Add a --version flag, with a test" --cycles 3'
EXIT_CODES = {NEEDS_LOGIN: 2, NO_GOAL_REACHED: 1}
PLAYED = {
    "README.md",
    *(f"docs/how-to/{name}.md" for name in ("use-the-result", "worktree", "pull-request", "batch", "rerun")),
    "docs/tutorial/first-run.md",
}
"""Here playbooks of files are always played; elsewhere by the long tests."""
WORKED_ON = {
    "docs/tutorial/first-run.md",
    *(f"docs/how-to/{name}.md" for name in ("watch", "resume-and-fork", "providers", "try-your-team")),
    *(f"docs/how-to/{name}.md" for name in ("use-the-result", "worktree", "pull-request", "batch", "rerun")),
}
"""Each command works on a run of four roles; by default, those of the README do so."""
WRITTEN = ("docs/tutorial/", "docs/how-to/flow-in-ten-minutes.md")
"""Pages whose files are written before their commands are given."""
LONG = pytest.mark.long
A_RUN = "mkdir workspace && codex-multi-role --playbook roman-numerals --workspace workspace --cycles"
NEEDS_A_RUN = {"docs/how-to/watch.md": 2, "docs/how-to/resume-and-fork.md": 1}
"""With its cycles; the goal is reached in the second."""
RECORDINGS = "docs/how-to/record-and-replay.md"
SHIPPED_FLOWS = "docs/reference/shipped-flows.md"
TRIED_ELSEWHERE = (RECORDINGS, SHIPPED_FLOWS, MANY_MACHINES, OPERATION, EXTENSIONS, "examples/")
ANSWER: Record = {"summary": "nothing to do", "key_points": [], "analysis_md": None, "error": None}
ANSWERS = {
    "name": "docs",
    "default": {"json": {"summary": "nothing to do", "status": "DONE"}},
    "roles": {
        "planner": [{"json": {**ANSWER, "tasks": [], "next_owner": "architect"}}],
        "architect": [{"json": ANSWER}],
        "implementer": [{"json": {**ANSWER, "files": []}}],
        "integrator": [{"json": {**ANSWER, "status": "DONE"}}],
    },
    "repeat_last": True,
}
"""What the shipped team answers, and any other role."""
PAGES = [name for name in page_names() if commands(name) and not name.startswith(TRIED_ELSEWHERE)]
PLAYS = sorted(
    {each for page in PAGES if page not in {*PLAYED, *WRITTEN} for each in commands(page) if "--playbook" in each}
)


def _as_given(command: str, page: str) -> str:
    if command == LOGIN:
        return f"{command} --help"
    if command == DOCTOR:
        return f"{command} -c model_provider=ollama"
    if "--playbook" in command and (page not in PLAYED or command.endswith("--playbook auto")):
        return command.replace("codex-multi-role --", "codex-multi-role --dry-run --")
    return command


def _write(block: Block, folder: Path) -> None:
    (file := folder / block.title).parent.mkdir(parents=True, exist_ok=True)
    file.write_text(block.text)


@pytest.mark.real
@pytest.mark.parametrize("page", [pytest.param(page, marks=[LONG] if page in WORKED_ON else []) for page in PAGES])
def test_commands_of_page_work(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From top to bottom; a block with a file's name is written to it. ``gh`` is scripted."""
    monkeypatch.setenv("PATH", os.pathsep.join([scripted_host(tmp_path / "host", "gh").path, os.environ["PATH"]]))
    (folder := tmp_path / "project").mkdir()
    if page in NEEDS_A_RUN:
        cycles = NEEDS_A_RUN[page]
        assert give(f"{A_RUN} {cycles}", folder).returncode == (cycles == 1)
    with PlaybookServer(Playbook.model_validate(ANSWERS)) as server:
        for block in blocks(page):
            if block.title and page.startswith(WRITTEN):
                _write(block, folder)
            for command in block.commands:
                if command == SERVER or command.endswith("-m pytest"):  # tested below; and this very command
                    continue
                done = give(_as_given(command, page).replace(LOCAL_PROVIDER, server.base_url), folder)
                assert done.returncode == EXIT_CODES.get(command, 0), f"{command}\n{done.stdout}{done.stderr}"
                assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("command", PLAYS)
def test_flow_plays_its_playbook(command: str, tmp_path: Path) -> None:
    (folder := tmp_path / "project").mkdir()
    done = give(command, folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_commands_of_shipped_flows_are_those_of_other_pages() -> None:
    assert set(commands(SHIPPED_FLOWS)) <= {command for page in PAGES for command in commands(page)}


def test_readme_has_the_two_commands() -> None:
    assert [command.split()[0] for command in commands("README.md")].count("python") == 1
    assert {LOGIN, NEEDS_LOGIN} <= set(commands("README.md"))


@pytest.mark.real
def test_server_answers_until_it_is_ended(tmp_path: Path) -> None:
    """On a port that is free: the one of the page may be somebody's."""
    assert commands("docs/how-to/browser.md") == [SERVER]
    environment = {**os.environ, "CODEX_MULTI_ROLE_PORT": "0"}
    with listening(["bash", "-c", f"exec {SERVER}"], tmp_path, environment) as server:
        assert server.client.get("/").status_code == 200
        assert server.end() == (0, "")


@pytest.mark.long
def test_commands_of_recordings_work(tmp_path: Path) -> None:
    """The first one records what a playbook answers."""
    role = {"name": "one", "prompt_text": "Do it.", "behaviors": {"can_finish": True}}
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles/catalog.yaml").write_text(yaml.safe_dump({"version": 1, "roles": [role]}))
    (tmp_path / "play.yaml").write_text(yaml.safe_dump(ANSWERS))
    copy, record, replay, test = commands(RECORDINGS)
    recorded = f"{record} --playbook play.yaml && mkdir recordings && cp version.ndjson recordings"
    (tmp_path / "shop").mkdir()
    for command in (copy, recorded, replay, test):
        done = give(command, tmp_path)
        assert done.returncode == 0, done.stderr
