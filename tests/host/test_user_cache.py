"""Where the user's cache and state are, and who may write there."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.host.user_cache import home_folder, is_only_ours, make_private, user_folder


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
