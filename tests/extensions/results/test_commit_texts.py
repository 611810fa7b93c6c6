"""What commits say of a run is for people who read them, and makes a git host do nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.extensions.results.commit_texts import inert
from codex_multi_role.extensions.results.exporting import export_branch, start_of
from codex_multi_role.extensions.results.run_history import history_of
from tests.support.histories import History

pytestmark = pytest.mark.real


def test_reports_of_roles_refer_to_nothing_of_a_git_host(tmp_path: Path) -> None:
    """Otherwise a commit in the default branch would close issues, notify people and skip tests."""
    told = "Fixes #1, GH-2, o/r#3 and !4 for @somebody; see https://example.com/issues/5. [Skip CI] In C#, a != b"
    harmless = (
        "Fixes # 1, GH 2, o/r# 3 and ! 4 for @ somebody; see https: //example.com/issues/5. [ Skip CI] In C#, a != b"
    )
    assert inert(told) == harmless
    history = History(tmp_path, {}, {})
    history.turn("writer", {"a": "1"}, summary=told)
    repository, below, base = start_of(recorded := history_of(history.run), None)
    made = export_branch(recorded, "agents/run", repository, below, base)
    message = repository.git.run("show", "--no-patch", "--format=%B", made.tip).stdout.decode()
    assert " ".join(message.split()).startswith("writer: Fixes # 1, GH 2, o/r# 3 and ! 4")
    assert harmless in " ".join(message.split())
