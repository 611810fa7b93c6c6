"""Which program is asked, and what it answers."""

from __future__ import annotations

import pytest

from codex_multi_role.extensions.results.pull_request.git_hosts import GIT_HOSTS, GITHUB, GITLAB, hosts_of, last_address


@pytest.mark.parametrize(
    ("remote", "programs"),
    [
        ("git@github.com:o/r.git", ["gh"]),
        ("https://someone:secret@github.example.com/o/r", ["gh"]),
        ("ssh://git@gitlab.example.com:2222/o/r.git", ["glab"]),
        ("https://gitlab.com/github/r.git", ["glab"]),
        ("https://git.example.com/github/gitlab.git", ["gh", "glab"]),
        ("/srv/github/r.git", ["gh", "glab"]),
        ("file:///srv/gitlab/r.git", ["gh", "glab"]),
        ("../gitlab", ["gh", "glab"]),
    ],
)
def test_program_is_that_of_the_server_or_any(remote: str, programs: list[str]) -> None:
    assert [host.program for host in hosts_of(remote)] == programs


def test_addresses_are_found_in_what_is_printed() -> None:
    assert GITHUB.first_address('[{"url": "https://a/1"}, {"url": "https://a/2"}]') == "https://a/1"
    assert GITLAB.first_address('[{"iid": 1, "web_url": "https://b/1"}]') == "https://b/1"
    assert [host.first_address(printed) for host in GIT_HOSTS for printed in ("[]", "")] == [""] * 4
    for printed in ("none", "{}", "[1]", '{"message": "401"}', '[{"id": 1}]'):
        assert GITHUB.first_address(printed) is None
    assert last_address("Creating (see https://a/b)\n\n!1 It (branch)\n https://a/1\n") == "https://a/1"
    assert last_address("nothing") == ""
