"""Where the user's cache is, and who may write there."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.host.user_cache import is_only_ours, make_user_cache, user_cache


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"XDG_CACHE_HOME": "/caches", "HOME": "/home/me"}, "/caches/codex-multi-role/runs"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.cache/codex-multi-role/runs"),
        ({}, "/dev/null/.cache/codex-multi-role/runs"),
    ],
)
def test_cache_follows_the_base_directories(environment: dict[str, str], expected: str) -> None:
    assert user_cache("runs", environment) == Path(expected)


def test_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    make_user_cache(folder := tmp_path / "cache/homes")
    assert is_only_ours(folder)
    folder.chmod(0o777)
    assert not is_only_ours(folder)
    with pytest.raises(PermissionError, match="others can write"):
        make_user_cache(folder)
