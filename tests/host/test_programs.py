"""Programs are not taken from where models write."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.host import programs
from codex_multi_role.host.programs import (
    exclude_from_path,
    loaded_in_temporary_folders,
    program_path,
    require_unsteered,
    steering_variables,
)


def test_folder_that_no_longer_exists_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_excluded", set())
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        exclude_from_path(folder)
        assert program_path({"PATH": f"{folder}/bin:/usr/bin"}) == "/usr/bin"
        if number:
            shutil.rmtree(folder)
    exclude_from_path(tmp_path / "0")
    assert programs._excluded == {tmp_path / "0"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", []),
        ("/opt/lib:/usr/lib/x", []),
        (".", ["."]),
        ("src:/opt/lib", ["src"]),
        ("/opt/lib:", [""]),
        (":", ["", ""]),
        ("~/lib", ["~/lib"]),
        ("{work}", ["{work}"]),
        ("/opt/lib:{work}/src/../lib", ["{work}/src/../lib"]),
        ("{work}/../outside", []),
        ("{outside}/link", ["{outside}/link"]),
        ("{work}/link-out", ["{work}/link-out"]),
        ("{work}-2", []),
        ("{outside}/zip.zip", []),
        ("{work}/code.zip", ["{work}/code.zip"]),
    ],
)
def test_entry_that_a_model_can_write_is_named(
    value: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (work, outside):
        folder.mkdir()
    (outside / "link").symlink_to(work)
    (work / "link-out").symlink_to(outside)
    monkeypatch.setattr(programs, "_excluded", {work})
    monkeypatch.setattr(programs, "_temporary_folders", set)
    names = {"work": work, "outside": outside}
    environment = {"PYTHONPATH": value.format(**names)}
    found = steering_variables(environment).get("PYTHONPATH", [])
    assert found == [each.format(**names) for each in expected]


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("PYTHONHOME", "/work/python", ["/work/python"]),
        ("PYTHONHOME", "/usr", []),
        ("PYTHONUSERBASE", ".local", [".local"]),
        ("PYTHONPYCACHEPREFIX", "/work/.cache", ["/work/.cache"]),
        ("PYTHONPLATLIBDIR", "lib64", []),
        ("PYTHONPLATLIBDIR", "/work/lib", ["/work/lib"]),
        ("COVERAGE_PROCESS_START", ".coveragerc", [".coveragerc"]),
        ("LD_LIBRARY_PATH", "/usr/local/lib:", [""]),
        ("LD_LIBRARY_PATH", "/usr/local/lib", []),
        ("LD_PRELOAD", "libjemalloc.so.2", []),
        ("LD_PRELOAD", "/usr/lib/a.so /work/b.so", ["/work/b.so"]),
        ("LD_PRELOAD", "./b.so:/usr/lib/a.so", ["./b.so"]),
        ("GIT_CONFIG_GLOBAL", "/work/.gitconfig", ["/work/.gitconfig"]),
        ("GIT_CONFIG_GLOBAL", "/dev/null", []),
        ("GIT_SSH_COMMAND", "ssh -o BatchMode=yes", []),
        ("GIT_SSH_COMMAND", "'/work/bin/ssh' -v", ["/work/bin/ssh"]),
        ("GIT_SSH_COMMAND", "ssh -i ~/.ssh/deploy", []),
        ("GIT_DIR", "/work/.git", []),
        ("GIT_CONFIG_SYSTEM", "gitconfig", ["gitconfig"]),
        ("GIT_EXEC_PATH", "/work/.git-core", ["/work/.git-core"]),
        ("GIT_TEMPLATE_DIR", "/work/template", ["/work/template"]),
        ("SSH_ASKPASS", "bin/askpass", ["bin/askpass"]),
        ("LD_AUDIT", "./x.so", ["./x.so"]),
        ("PYTHONEXECUTABLE", "/work/.venv/bin/python", ["/work/.venv/bin/python"]),
        ("PYTHONPATH", "lib\n\x1b[31m", ["lib\n\x1b[31m"]),
    ],
)
def test_variable_that_loads_code_of_a_model_is_named(
    variable: str, value: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_excluded", {Path("/work")})
    with nullcontext() if not expected else pytest.raises(UsageError) as caught:
        require_unsteered({variable: value})
    if caught is not None:
        assert str(caught.value).endswith(f" through {variable}: {', '.join(map(json.dumps, expected))}")


@pytest.mark.parametrize(
    ("place", "is_loose"),
    [("there", False), ("missing", True), ("link", True), ("link/below", True), (".", True), ("there/../there", False)],
)
def test_temporary_folder_gives_only_what_exists_in_it(
    place: str, is_loose: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What exists can be kept from roles; anything else a role could put there."""
    monkeypatch.setattr(programs, "_temporary_folders", lambda: {tmp_path})
    (tmp_path / "there" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "there")
    environment = {"PYTHONPATH": f"{tmp_path}/{place}"}
    assert bool(steering_variables(environment)) is is_loose
    assert (Path(environment["PYTHONPATH"]) in loaded_in_temporary_folders(environment)) is not is_loose


def test_all_variables_that_load_code_of_a_model_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_excluded", {Path("/work")})
    monkeypatch.setattr("site.USER_SITE", "/work/.local/lib")
    monkeypatch.setattr("site.ENABLE_USER_SITE", True)
    with pytest.raises(UsageError) as caught:
        require_unsteered({"PYTHONPATH": "src:/opt:", "LD_PRELOAD": "./x.so"})
    assert str(caught.value).partition(" through ")[2] == (
        'PYTHONPATH: "src", ""; LD_PRELOAD: "./x.so"; the user\'s site-packages: "/work/.local/lib"'
    )
    assert "env -u VARIABLE" in caught.value.hint


def test_threads_may_exclude_folders_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as those of a server, which each start a run: while one looks for old folders, another adds its own."""
    monkeypatch.setattr(programs, "_excluded", {tmp_path})

    def exists(path: Path) -> bool:
        programs._excluded.add(path / "other")
        return True

    monkeypatch.setattr(Path, "exists", exists)
    exclude_from_path(tmp_path)
    assert tmp_path / "other" in programs._excluded
