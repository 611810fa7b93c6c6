from __future__ import annotations

from codex_multi_role.checks.environment import without_secrets


def test_what_is_named_like_a_secret_is_left_out() -> None:
    secrets = ["OPENAI_API_KEY", "github_token", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "MY_CREDENTIALS", "NPM_AUTH"]
    secrets += ["DB_PASSWD", "CODEX_MULTI_ROLE_DATABASE_URL"]
    kept = {"PATH": "/bin", "HOME": "/h", "LANG": "C", "GIT_AUTHOR_NAME": "n", "CODEX_HOME": "/c", "PYTHONPATH": "."}
    assert without_secrets({**dict.fromkeys(secrets, "x"), **kept}) == kept
