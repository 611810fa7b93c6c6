"""Every command of the README and of CONTRIBUTING works as printed.

The environment they make is the one the tests run in; the two that need a model find a scripted one, or no login. By
default only the first of those with a shipped playbook runs: the others are dry runs, and their playbooks are read.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from codex_multi_role.catalog import packaged_roles
from codex_multi_role.lifecycle.definitions import load_catalog, load_flow_and_called
from codex_multi_role.playbook import Playbook, PlaybookServer, load_playbook
from codex_multi_role.replies import read_reply
from tests.support.console import Completed, console
from tests.support.serving import listening

pytestmark = pytest.mark.systems
TOP = Path(__file__).parents[1]
PREPARE = re.compile(r"^python3 -m venv \.venv && \.venv/bin/pip install --quiet -e \S+ && \.venv/bin/")
EXHIBIT = re.compile(r"^### (\S+)\n\n.*?\n\n```sh\n(.*?)\n```\n\n```mermaid\n(.*?)```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
LOCAL_PROVIDER = "http://127.0.0.1:8080/v1"
NEEDS_LOGIN = {
    'codex-multi-role --goal "Add a --version flag, with a test" --cycles 3': 2,
    'codex-multi-role --goal "Add a --version flag, with a test" --record version.ndjson': 2,
}
INTERACTIVE = "codex-multi-role codex login"
OURS = re.compile("codex-multi-role (?!codex )")
"""Not what becomes Codex itself."""
NEW_FOLDER = "$(mktemp -d)"
SERVER = "codex-multi-role serve"
ANSWERS = {"default": {"json": {"summary": "nothing to do", "status": "DONE"}}}


def commands(name: str) -> list[str]:
    text = (TOP / name).read_text()
    return [line for block in FENCE.findall(text) for line in block.splitlines() if line and not line.startswith("#")]


README = commands("README.md")
LOOKING = [
    "codex-multi-role runs",
    "codex-multi-role show latest",
    "codex-multi-role report latest",
    "codex-multi-role resume latest --cycles 6",
    "codex-multi-role watch latest",
    "codex-multi-role watch latest --plain",
    "codex-multi-role watch --all",
    'codex-multi-role fork latest --from team:2 --goal "The same for a clock face"',
]
REPLAYING = [
    'codex-multi-role --replay version.ndjson --workspace "$(mktemp -d)"',
    "codex-multi-role replay-test recordings",
]
NEEDS_A_RUN = [*LOOKING[1:], *REPLAYING]


@pytest.fixture(autouse=True)
def _newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without a login, in which the console command is found."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith(("CODEX_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


def shell(command: str, folder: Path) -> Completed:
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=240, check=False)


def give(command: str, folder: Path) -> Completed:
    """Give the parts of ``command`` until one fails: in this process what is ours, the rest to a shell."""
    for part in command.split(" && "):
        done = _in_this_process(part, folder) if OURS.match(part) else shell(part, folder)
        if done.returncode:
            break
    return done


def _in_this_process(command: str, folder: Path) -> Completed:
    given, _, file = command.partition(" > ")
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    _, *arguments = shlex.split(given.replace(NEW_FOLDER, str(temporary)))
    done = console(*arguments, folder=folder)
    if file:
        (folder / file).write_text(done.stdout)
    return done


def test_readme_is_the_one_tested() -> None:
    assert sum(bool(PREPARE.match(command)) for command in README) == 2
    assert {INTERACTIVE, SERVER} <= set(README)
    assert set(NEEDS_LOGIN) <= set(README)
    assert {*LOOKING, *REPLAYING} <= set(README)


ONCE = dict.fromkeys(PREPARE.sub("", each) for each in README if each not in (*NEEDS_A_RUN, SERVER))
"""A command may stand in the README twice, with what prepares for it, and in the gallery."""
FIRST, *MORE_PLAYED = [command for command in ONCE if "--playbook" in command]


@pytest.mark.parametrize(
    "command", [pytest.param(each, marks=pytest.mark.long if each in MORE_PLAYED else ()) for each in ONCE]
)
def test_each_command_does_what_the_readme_says(command: str, tmp_path: Path) -> None:
    if "pytest" in command:
        pytest.skip("this very command is what runs the tests")
    folder = tmp_path / "project"
    folder.mkdir()
    expected = NEEDS_LOGIN.get(command, 0)
    if command == INTERACTIVE:
        command += " --help"
    if command == "codex-multi-role doctor":
        command += " -c model_provider=ollama"
    with PlaybookServer(Playbook.model_validate({"name": "readme", **ANSWERS})) as server:
        done = give(command.replace(LOCAL_PROVIDER, server.base_url), folder)
    assert done.returncode == expected, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", MORE_PLAYED)
def test_played_command_can_begin(command: str, tmp_path: Path) -> None:
    """Its flow, its inputs, its files and its playbook are right."""
    (folder := tmp_path / "project").mkdir()
    done = give(command.replace("codex-multi-role --", "codex-multi-role --dry-run --"), folder)
    assert done.returncode == 0, done.stderr
    assert not (folder / "runs").exists()


def test_commands_that_inspect_and_continue_run_work(tmp_path: Path) -> None:
    """These are the README commands that list, show, report, resume, watch and fork a run."""
    start = "mkdir workspace && codex-multi-role --playbook roman-numerals --cycles 1 --workspace workspace"
    assert give(start, tmp_path).returncode == 1
    for command in LOOKING:
        done = give(command, tmp_path)
        assert done.returncode == 0, done.stderr


def test_server_answers_until_it_is_ended(tmp_path: Path) -> None:
    """On a port that is free: the one of the README may be somebody's."""
    environment = {**os.environ, "CODEX_MULTI_ROLE_PORT": "0"}
    with listening(["bash", "-c", f"exec {SERVER}"], tmp_path, environment) as server:
        assert "There are no runs in runs yet." in server.client.get("/").text
        assert server.end() == (0, "")


def test_replaying_what_was_recorded(tmp_path: Path) -> None:
    role = {"name": "one", "prompt_text": "Do it.", "behaviors": {"can_finish": True}}
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles/catalog.yaml").write_text(yaml.safe_dump({"version": 1, "roles": [role]}))
    (tmp_path / "play.yaml").write_text(yaml.safe_dump({"name": "readme", **ANSWERS}))
    start = "mkdir shop recordings && codex-multi-role --goal it --playbook play.yaml --workspace shop"
    start += " --record version.ndjson && cp version.ndjson recordings"
    assert give(start, tmp_path).returncode == 0
    for command in REPLAYING:
        done = give(command, tmp_path)
        assert done.returncode == 0, done.stderr


def test_mcp_servers_of_the_readme_are_a_catalog(tmp_path: Path) -> None:
    from codex_multi_role import RoleSpecCatalog

    block = re.search(
        r"^### MCP servers\n\n```yaml\n(.*?)^```", (TOP / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert block is not None
    (tmp_path / "catalog.yaml").write_text(block[1])
    assert list(RoleSpecCatalog.load(tmp_path).role("planner").mcp_servers) == ["tracker"]


def test_yaml_of_the_readme_is_a_catalog(tmp_path: Path) -> None:
    from codex_multi_role import RoleSpecCatalog

    block = re.search(r"^```yaml\n(.*?)^```", (TOP / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert block is not None
    (tmp_path / "catalog.yaml").write_text(block[1])
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/implementer.md").write_text("Write it.")
    assert [role.name for role in RoleSpecCatalog.load(tmp_path).roles] == ["planner", "implementer", "reviewer"]


def test_every_key_of_a_role_is_in_the_readme() -> None:
    from codex_multi_role import RoleSpec

    text = (TOP / "README.md").read_text()
    assert not [key for key in RoleSpec.model_fields if f"`{key}`" not in text and key not in ("schema_hint", "source")]


@pytest.mark.parametrize("name", ["testgen", "testgen-duel"])
def test_playbook_of_the_gallery_has_valid_answers(name: str) -> None:
    """The others are played by tests of their systems."""
    _, catalog = load_flow_and_called(name, load_catalog(packaged_roles()))
    for role, visits in load_playbook(name).roles.items():
        for visit in visits:
            reply = read_reply(json.dumps(visit.payload), catalog.role(role).output_schema)
            assert reply.handoff == visit.payload, role


def test_gallery_shows_current_graph_of_each_top_level_flow() -> None:
    """A top-level flow is one that no other shipped flow calls."""
    from codex_multi_role.catalog import list_flows
    from codex_multi_role.flow.graph import outline

    gallery = (TOP / "README.md").read_text().partition("\n## Gallery\n")[2].partition("\n## ")[0]
    shipped = {entry.name: entry.flow for entry in list_flows(packaged_roles()) if entry.flow is not None}
    exhibits = {name: (command, picture) for name, command, picture in EXHIBIT.findall(gallery)}
    assert gallery.count("```mermaid") == len(exhibits)
    called = {step.call for flow in shipped.values() for step in flow.steps}
    assert shipped.keys() - called <= exhibits.keys() <= shipped.keys()
    for name, (command, picture) in exhibits.items():
        assert picture == outline(shipped[name])
        assert f"--flow {name} " in command or name == "cycles"
        assert "--playbook" in command
