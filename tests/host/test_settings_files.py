from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from codex_multi_role.host.settings_files import (
    PYPROJECT,
    SETTINGS_FILE,
    holds_settings,
    nearest_settings,
    search_folders,
    user_file,
    without_settings,
)
from codex_multi_role.host.user_cache import home_folder, is_only_ours, make_private, user_folder
from tests.support.workspaces import write_files

TABLE = '[tool.codex-multi-role]\ncycles = 2\nconfig = ["a=1"]\n'


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with ``a/b/c`` in it, without a boundary yet."""
    monkeypatch.setenv("HOME", "/nowhere")
    (tmp_path / "a/b/c").mkdir(parents=True)
    return tmp_path


def searched(top: Path) -> list[str]:
    return [str(folder.relative_to(top)) for folder in search_folders(top / "a/b/c")]


def test_search_without_repository_and_home_is_this_folder(top: Path) -> None:
    assert searched(top) == ["a/b/c"]


def test_search_ends_at_the_nearest_repository(top: Path) -> None:
    write_files(top, {".git": "", "a/.git/HEAD": ""})
    (top / "a/b/.git").mkdir()  # as Codex's sandbox leaves it behind
    assert searched(top) == ["a/b/c", "a/b", "a"]


def test_search_ends_at_home(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(top / "a"))
    assert searched(top) == ["a/b/c", "a/b", "a"]


def test_folder_that_others_may_write_ends_the_search(top: Path) -> None:
    (top / ".git").touch()
    (top / "a").chmod(0o1777)
    assert searched(top) == ["a/b/c"]


def test_temporary_folder_ends_the_search(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Roles may write there, whoever it belongs to."""
    (top / ".git").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(top / "a"))
    assert searched(top) == ["a/b/c"]


def test_nearest_file_wins_and_yaml_wins_in_one_folder(top: Path) -> None:
    (top / ".git").touch()
    assert nearest_settings(top / "a/b") is None
    (top / SETTINGS_FILE).touch()
    assert nearest_settings(top / "a/b") == top / SETTINGS_FILE
    (top / "a/pyproject.toml").write_text(TABLE)
    assert nearest_settings(top / "a/b") == top / "a" / PYPROJECT
    (top / "a" / SETTINGS_FILE).touch()
    assert nearest_settings(top / "a/b") == top / "a" / SETTINGS_FILE


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_pyproject_that_is_a_link_holds_no_settings(tmp_path: Path, link: object) -> None:
    (tmp_path / "other.toml").write_text(TABLE)
    link(tmp_path / PYPROJECT, tmp_path / "other.toml")  # type: ignore[operator]  # one of Path's own
    assert not holds_settings(tmp_path / PYPROJECT)


SPELLINGS = (
    *(TABLE, "[tool]\ncodex-multi-role = {cycles = 2}", "tool.codex-multi-role.cycles = 2"),
    *('[ "tool" . "codex-multi-role" ]', "[tool.codex-multi-role.input]\na = 1"),
)
OTHERS = ("", "[project]\nname = 'codex-multi-role'", "tool = 1 # codex-multi-role", "[tool.codex-multi-role\n")


@pytest.mark.parametrize("text", [*SPELLINGS, *OTHERS])
def test_settings_are_found_however_they_are_written(tmp_path: Path, text: str) -> None:
    (tmp_path / PYPROJECT).write_text(text)
    assert holds_settings(tmp_path / PYPROJECT) == (text in SPELLINGS)


def test_settings_are_cut_out_and_the_rest_stays() -> None:
    before, after = b"[project]\nname = 'x' # kept\n\n", b"[tool.ruff]\nline-length = 99\n"
    tables = TABLE.encode() + b"\n[tool.codex-multi-role.input]\na = 1\n\n"
    assert without_settings(before + tables + after) == before + after
    assert without_settings(before + tables) == before


@pytest.mark.parametrize(
    "text", [TABLE, "[project]\n[tool]\ncodex-multi-role = {cycles = 2}", f"[a]\n{TABLE}config2 = [\n[1],\n[2]]\n"]
)
def test_settings_that_cannot_be_cut_out_are_not(text: str) -> None:
    assert without_settings(text.encode()) is None


@pytest.mark.parametrize(
    ("given", "used"), [("/etc/own", "/etc/own"), ("own", "/home/user/.config"), ("", "/home/user/.config")]
)
def test_user_file_follows_xdg(given: str, used: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/user")
    monkeypatch.setenv("XDG_CONFIG_HOME", given)
    assert user_file() == Path(used) / "codex-multi-role/config.yaml"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"XDG_CACHE_HOME": "/caches", "HOME": "/home/me"}, "/caches/codex-multi-role/runs"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.cache/codex-multi-role/runs"),
        ({"XDG_STATE_HOME": "/states", "HOME": "/home/me"}, "/home/me/.cache/codex-multi-role/runs"),
        ({"HOME": "relative"}, "/dev/null/.cache/codex-multi-role/runs"),
    ],
)
def test_cache_follows_the_base_directories(environment: dict[str, str], expected: str) -> None:
    assert user_folder("CACHE", "runs", environment) == Path(expected)


def test_state_is_beside_the_cache() -> None:
    assert user_folder("STATE", "copies", {"HOME": "/home/me"}) == Path("/home/me/.local/state/codex-multi-role/copies")
    assert user_folder("STATE", "copies", {"XDG_STATE_HOME": "/states"}) == Path("/states/codex-multi-role/copies")


def test_user_without_a_home_has_a_path_that_cannot_be_created(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_entry(_: int) -> None:
        raise KeyError

    assert home_folder({}).is_absolute()
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", no_entry)
    assert home_folder() == home_folder({"HOME": "relative"}) == Path("/dev/null")


def test_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    make_private(folder := tmp_path / "cache/homes")
    assert is_only_ours(folder)
    folder.chmod(0o777)
    assert not is_only_ours(folder)
    with pytest.raises(PermissionError, match="others can write"):
        make_private(folder)
