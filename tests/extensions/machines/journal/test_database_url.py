"""Database URLs: what is refused before anything is started, and the deadlines that are added."""

from __future__ import annotations

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.journal.database_url import check_database_url, with_timeouts


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://me:hush@db/runs", "contains a password"),
        ("postgresql://me@db/runs?password=hush", "contains a password"),
        ("postgresql://me@db/runs?sslpassword=hush", "contains a password"),
        ("mysql://me@db/runs", 'of the kind "mysql"'),
        ("postgresql+asyncpg://me@db/runs", r'of the kind "postgresql\+asyncpg"'),
        ("host=db password=hush", "has no scheme"),
        ("postgresql://me@db", "names no database"),
        ("postgresql://me@db:/", "names no database"),
        ("postgresql://me@db:port/runs", "invalid database URL: Port"),
        ("postgresql://me@db/runs?sslmod=require", 'invalid database URL: .*"sslmod"'),
    ],
)
def test_unusable_url_is_refused_without_its_password(url: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as refused:
        check_database_url(url)
    assert refused.value.hint
    assert "hush" not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@db:5432/runs",
        "postgres:///runs?host=/run/sockets",
        "postgresql+psycopg://db/runs",
        "sqlite:////a/b",
    ],
)
def test_usable_url_is_accepted(url: str) -> None:
    check_database_url(url)


def test_timeouts_are_added_unless_the_url_has_them() -> None:
    plain = "connect_timeout=10&keepalives_idle=30&keepalives_interval=10&keepalives_count=3&tcp_user_timeout=30000"
    assert with_timeouts("postgres:///runs") == f"postgres:///runs?{plain}"
    own = "postgresql://db/runs?host=/a%20b&connect_timeout=2&tcp_user_timeout=1"
    assert with_timeouts(own) == f"{own}&keepalives_idle=30&keepalives_interval=10&keepalives_count=3"
    assert with_timeouts("sqlite:///a") == "sqlite:///a"
