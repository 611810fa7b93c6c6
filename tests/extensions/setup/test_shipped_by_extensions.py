"""Roles, flows, playbooks and starters of an extension are found by name, like the shipped ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from codex_multi_role.extensions.setup import init
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.playbook import is_automatic, load_playbook
from codex_multi_role.reading import registry
from codex_multi_role.reading.shipped import GROUP
from tests.support.console import console
from tests.support.plugins import distribution
from tests.support.workspaces import write_files

GREETER = "name: greeter\nprompt_text: Greet {name}.\noutput_schema: {{type: object, required: [text]}}\n"
FILES = {
    "__init__.py": "",
    "roles/greeter.yaml": GREETER.format(name="the reader"),
    "roles/flows/greet.yaml": "description: Say hello.\nsteps:\n  - ask: greeter\n    next: [{end: greeted}]\n",
    "roles/flows/cycles.yaml": "steps: [{ask: greeter}]\n",
    "roles/playbooks/hello.yaml": "name: hello\ngoal: Greet.\nroles: {greeter: [{json: {text: Hello!}}]}\n",
    "roles/starters/greeting/catalog.yaml": "version: 1\nroles: [{name: greeter, role_file: greeter.yaml}]\n",
    "roles/starters/greeting/starter.yaml": "purpose: greet people\nflow: greet\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package with definitions, installed as far as Python can tell."""
    site = tmp_path / "site"
    write_files(site / "greetings", FILES)
    distribution(site, "greetings", GROUP, ["greetings = greetings"])
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "greetings", raising=False)
    monkeypatch.delitem(sys.modules, init.__name__)  # on import, it looks for starters
    monkeypatch.chdir(tmp_path)
    return site / "greetings"


def test_commands_list_and_show_them(package: Path, tmp_path: Path) -> None:
    flows = console("flows", "list", folder=tmp_path).stdout
    assert "Say hello." in flows
    assert flows.count("\ncycles ") == 1
    assert "greeted" in console("flows", "show", "greet", folder=tmp_path).stdout
    assert "greeting" in console("init", "--help", folder=tmp_path).stdout
    assert "is the name of a flow" in console("run", "greet", folder=tmp_path).stderr
    asked = console("--flow", "greet", "--playbook", "hello", "--dry-run", folder=tmp_path)
    assert "Greet the reader." in asked.stdout, asked


def test_project_s_own_and_shipped_names_hide_theirs(package: Path) -> None:
    flows, _ = load_team("cycles", None)
    assert package not in flows["cycles"].source.parents
    Path("roles/flows").mkdir(parents=True)
    Path("roles/catalog.yaml").write_text("version: 1\nroles: [{name: one, prompt_text: Do it.}]\n")
    Path("roles/greeter.yaml").write_text(GREETER.format(name="me"))
    flows, catalog = load_team("greet", None)
    assert package in flows["greet"].source.parents
    assert catalog.role("greeter").prompt_text == "Greet me."


def test_starter_copies_what_it_names(package: Path, tmp_path: Path) -> None:
    done = console("init", "--for", "greeting", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Greet the reader." in (tmp_path / "roles/greeter.yaml").read_text()
    assert console("roles", "validate", folder=tmp_path).stdout == "ok: roles/catalog.yaml: greeter\n"


def test_extension_that_does_not_load_is_named_beside_an_unknown_flow(package: Path, tmp_path: Path) -> None:
    (package / "__init__.py").write_text("raise RuntimeError('broken')")
    done = console("flows", "validate", "greet", folder=tmp_path)
    assert done.returncode == 2
    assert 'unknown flow "greet"' in done.stderr
    assert "'greetings' (greetings) does not load: broken" in done.stderr


@pytest.mark.usefixtures("package")
def test_names_of_project_and_core_cost_no_lookup_of_extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("entry points were read")

    monkeypatch.setattr(registry, "_installed", fail)
    load_team("cycles", None)
    assert load_playbook("roman-numerals").name == "roman-numerals"
    assert is_automatic("auto")
