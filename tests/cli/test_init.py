from __future__ import annotations

from pathlib import Path

import yaml

from codex_multi_role.catalog import packaged_roles
from codex_multi_role.cli.init import settings_file
from codex_multi_role.cli.options import RUN
from codex_multi_role.cli.settings import read_file

from .console import console


def files_below(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def test_the_shipped_roles_are_copied_and_each_file_is_named(tmp_path: Path) -> None:
    done = console("init", "project", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    copied = files_below(tmp_path / "project" / "roles")
    assert copied == files_below(packaged_roles())
    for path in copied:
        assert f"wrote project/roles/{path}" in done.stderr
    assert (tmp_path / "project" / "codex-multi-role.yaml").is_file()


def test_the_copy_is_a_valid_catalog(tmp_path: Path) -> None:
    console("init", folder=tmp_path)
    done = console("roles", "validate", folder=tmp_path)
    assert done.stdout.startswith("ok: roles/catalog.yaml: planner")
    assert console("flows", "validate", folder=tmp_path).returncode == 0


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    (tmp_path / "codex-multi-role.yaml").write_text("cycles: 5\n")
    done = console("init", folder=tmp_path)
    assert done.returncode == 2
    assert "codex-multi-role.yaml" in done.stderr
    assert files_below(tmp_path) == [Path("codex-multi-role.yaml")]
    done = console("init", "--force", folder=tmp_path)
    assert done.returncode == 0
    assert "overwrote codex-multi-role.yaml" in done.stderr


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = console("init", "taken/project", folder=tmp_path)
    assert done.returncode == 3
    assert "cannot write taken/project" in done.stderr


def test_every_line_of_the_settings_file_can_be_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "codex-multi-role.yaml"
    path.write_text(settings_file())
    known = {setting.key: setting for setting in RUN}
    assert read_file(path, known) == {}
    keys = [line[2:] for line in settings_file().splitlines() if line.startswith("# ") and yaml_key(line[2:]) in known]
    path.write_text("\n".join(keys))
    assert len(read_file(path, known)) == len(keys) > 10


def yaml_key(line: str) -> str:
    loaded = yaml.safe_load(line) if line.partition(":")[0].replace("-", "").isalpha() else None
    return next(iter(loaded)).replace("-", "_") if isinstance(loaded, dict) else ""
