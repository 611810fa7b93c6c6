from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.support.catalogs import CATALOG, write_team
from tests.support.console import console


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_team(tmp_path)


def test_list(project: Path) -> None:
    done = console("roles", "list", "--roles", "team", folder=project)
    assert [line.split() for line in done.stdout.splitlines()[1:]] == [
        ["thinker", "$THINKER_MODEL", "read-only", "on-request", "team/catalog.yaml"],
        ["doer", "workspace-write", "on-request", "thinker", "team/catalog.yaml"],
    ]
    listed = json.loads(console("roles", "list", "--json", "--roles", "team", folder=project).stdout)
    assert [role["name"] for role in listed] == ["thinker", "doer"]


def test_show(project: Path) -> None:
    shown = yaml.safe_load(console("roles", "show", "doer", "--roles", "team", folder=project).stdout)
    assert (shown["name"], shown["sandbox"]) == ("doer", "workspace-write")
    assert shown["prompt"].startswith(f"Role: doer\n\n{shown['prompt_text'].rstrip()}\n\nGOAL")
    done = console("roles", "show", "doar", "--roles", "team", folder=project)
    assert done.returncode == 2
    assert 'unknown role "doar"; did you mean "doer"?' in done.stderr


def test_validate(project: Path) -> None:
    done = console("roles", "validate", "--roles", "team", "doer", folder=project)
    assert (done.returncode, done.stdout) == (0, "ok: team/catalog.yaml: doer\n")
    assert console("roles", "validate", "--roles", "team", "nobody", folder=project).returncode == 2


def test_wrong_catalog_is_named_with_its_key(project: Path) -> None:
    (project / "team" / "catalog.yaml").write_text(CATALOG.replace("prompt_text: Think.", "prompt_txt: Think."))
    done = console("roles", "validate", "--roles", "team", folder=project)
    assert done.returncode == 2
    assert 'error: team/catalog.yaml:5:5: role thinker: unknown key "prompt_txt"' in done.stderr


def test_tools_of_a_role_are_looked_up(project: Path) -> None:
    asking = CATALOG.replace("prompt_text: Think.", "prompt_text: Think.\n    tools: [ask_user]")
    (project / "team" / "catalog.yaml").write_text(asking)
    shown = console("roles", "show", "thinker", "--roles", "team", folder=project)
    assert yaml.safe_load(shown.stdout)["tools"] == ["ask_user"]
    (project / "team" / "catalog.yaml").write_text(asking.replace("ask_user", "ask_usr"))
    done = console("roles", "validate", "--roles", "team", folder=project)
    assert done.returncode == 2
    assert 'role thinker: tools[0]: unknown tool "ask_usr"; did you mean "ask_user"?' in done.stderr


def test_folder_can_be_set_like_any_option(project: Path) -> None:
    variables = {"CODEX_MULTI_ROLE_ROLES": "team"}
    assert "thinker" in console("roles", "list", folder=project, variables=variables).stdout
    (project / "codex-multi-role.yaml").write_text("roles: team\n")
    assert "thinker" in console("roles", "list", folder=project).stdout
