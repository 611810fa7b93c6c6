"""Everything but the extensions works without them and the packages of theirs, and while they are broken.

Costs: a process for each package that is missing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import partial
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.core.commands import Ends, run_commands
from tests.core.without_extensions import EXTENSIONS, TOP, copy_without_extensions, environment
from tests.docs.shipped_flows import TRIED
from tests.support.catalogs import files_of_skill, seven_zipped

pytestmark = pytest.mark.real

CYCLES = "--goal numbers --playbook roman-numerals --json"
ONE_CYCLE = f"{CYCLES} --cycles 1 --no-run-tests"
DEFINITIONS = ("flows list", "flows validate cycles", "roles validate")
BROKEN = "raise RuntimeError('broken system')\n"
Run = Callable[..., Ends]


@pytest.fixture
def core(tmp_path: Path) -> Path:
    return copy_without_extensions(tmp_path / "core")


@pytest.fixture
def run(core: Path, tmp_path: Path) -> Run:
    """Run commands of the copy in an empty workspace, one after another in one process: code, stdout and stderr."""
    (workspace := tmp_path / "workspace").mkdir()
    return partial(run_commands, workspace, env=environment(core))


def test_core_works_without_extensions(run: Run) -> None:
    """A run works, the definitions of the core are read, and what needs a missing extension is refused."""
    (code, events, said), *read, flow, playbook, option = run(
        ONE_CYCLE, *DEFINITIONS, "flows validate testgen", "--playbook circle", f"{ONE_CYCLE} --record x.ndjson"
    )
    assert code == 1, said
    assert '"outcome": "cycles_used_up"' in events
    for code, stdout, stderr in read:
        assert (code, stderr) == (0, "")
        assert stdout
    assert 'unknown option "--record"' in option[2]
    for part, (code, _, stderr) in (("flow", flow), ("playbook", playbook)):
        assert code == 2
        assert f'unknown {part} "' in stderr
        assert f"Installing codex-multi-role registers more {part}s" in stderr
        assert "pip install -e ." in stderr


@pytest.mark.long
def test_broken_extensions_stop_nothing_but_their_flows(run: Run, core: Path, tmp_path: Path) -> None:
    """No short test has extensions that cannot be imported."""
    (core / EXTENSIONS).mkdir()
    (core / EXTENSIONS / "__init__.py").write_text(BROKEN)
    next(core.glob("*.dist-info")).rename(tmp_path / "metadata")  # the installed one has their entry points
    (code, events, said), (refused, _, words) = run(ONE_CYCLE, "flows validate testgen")
    assert code == 1, said
    assert '"outcome": "cycles_used_up"' in events
    assert refused == 2
    assert "does not load: broken system" in words


WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Limited(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in {missing} else super().find_spec(name, path, target)

sys.meta_path[:] = [Limited if each is PathFinder else each for each in sys.meta_path]
"""
DISTRIBUTION = "codex-multi-role"
TEAM = "--goal numbers --playbook roman-numerals"
TEAM_WITH = "version: 1\nroles: [{{name: one, prompt_text: Do it., {}}}]\n"
PATTERN, PACKED = "output_schema: {properties: {id: {pattern: '^T[0-9]$'}}}", "skills: [draw]"
INSTALL = "hint: Install it: pip install 'codex-multi-role[{}]'\n"


def packages_with(*extras: str) -> set[str]:
    """What pip installs for codex-multi-role with these extras, as far as it is installed here."""
    found, left = {DISTRIBUTION}, [DISTRIBUTION]
    while left:
        name = left.pop()
        chosen = extras if name == DISTRIBUTION else ()
        needed = map(Requirement, requires(name) or ())
        wanted = [
            each for each in needed if not each.marker or any(each.marker.evaluate({"extra": e}) for e in ("", *chosen))
        ]
        names = {canonicalize_name(each.name) for each in wanted}
        left += names - found
        found |= names
    return found


def limited_to(packages: set[str], workspace: Path) -> Run:
    """Run commands in a process that cannot import other packages."""
    missing = {
        module
        for module, names in packages_distributions().items()
        if module.isidentifier() and not packages & {canonicalize_name(name) for name in names}
    }
    return partial(run_commands, workspace, env=dict(os.environ), before=WITHOUT.format(missing=missing))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (folder := tmp_path / "workspace").mkdir()
    return folder


@pytest.fixture
def limited(workspace: Path) -> Run:
    return limited_to(packages_with(), workspace)


def extras_of_readme() -> list[str]:
    [found, *_] = re.findall(r"pip install --quiet -e '\.\[([\w,-]+)\]'", (TOP / "README.md").read_text())
    return str(found).split(",")


def see_a_team_work(limited: Run) -> None:
    first, second, story, page, team, words = limited(
        f"{TEAM} --cycles 1 --json", "resume --cycles 3 --playbook roman-numerals", "show", "report", "init", "--help"
    )
    assert json.loads(first[1].splitlines()[-1])["outcome"] == "cycles_used_up", first
    assert (first[0], second[0]) == (1, 0), second
    assert "Done: integrator said DONE" in second[2]
    for code, _, said in (story, page, team, words):
        assert code == 0, said
    assert all(f"\n  {command} " in words[1] for command in ("batch", "serve", "rerun", "diff"))


def test_team_works_with_the_packages_of_the_core(limited: Run) -> None:
    [(code, _, said)] = limited("flows validate")
    see_a_team_work(limited)
    assert (code, said.count("document cannot run here: the check 'code_graph' needs networkx")) == (0, 1), said


def test_first_command_of_readme_brings_what_shipped_flows_need(workspace: Path) -> None:
    limited = limited_to(packages_with(*extras_of_readme()), workspace)
    for code, _, said in limited("flows validate", *(f"flows validate {name}" for name in TRIED)):
        assert code == 0, said


@pytest.mark.parametrize(
    ("command", "module", "extra"),
    [
        ("serve", "h11", "web"),
        ("queues --database-url sqlite:///none.db", "sqlalchemy", "machines"),
        ("runs --database-url postgresql://db.example.org/runs", "sqlalchemy", "machines"),
        (f"{TEAM} --database-url sqlite:///none.db", "dbos", "machines"),
        ("flows validate document", "networkx", "document"),
    ],
)
def test_missing_extra_is_named(limited: Run, command: str, module: str, extra: str) -> None:
    [(code, _, said)] = limited(command)
    assert code == 2, said
    assert f" needs {module}, which is not installed\n" in said
    assert said.endswith(INSTALL.format(extra))


def test_missing_extra_of_a_team_is_named(limited: Run, workspace: Path) -> None:
    """A 7z archive and a pattern are found out in definitions."""
    (workspace / "roles/skills").mkdir(parents=True)
    (workspace / "roles/skills/draw.skill").write_bytes(seven_zipped(files_of_skill("draw")))
    for text, command, extra in ((PACKED, "roles validate", "7z"), (PATTERN, "--goal g --playbook auto", "patterns")):
        (workspace / "roles/catalog.yaml").write_text(TEAM_WITH.format(text))
        [(code, _, said)] = limited(command)
        assert code == 2, said
        assert f"pip install 'codex-multi-role[{extra}]'" in said
