from __future__ import annotations

from dataclasses import replace

import pytest

from codex_multi_role.checks import RunFacts, find_check
from codex_multi_role.errors import UsageError
from tests.support.checks import MakeContext


def test_answer_is_written_to_the_run_folder(make_context: MakeContext) -> None:
    context = make_context({}, text="It is 42.\n\n")
    run = context.folder.parent
    facts = RunFacts("one", "plan-solve", "", run, "answer.1", [])
    assert find_check("answer")(replace(context, run=lambda: facts)) == {"status": "written", "file": "answer.md"}
    assert (run / "answer.md").read_text() == "It is 42.\n"


def test_empty_answer_is_none(make_context: MakeContext) -> None:
    with pytest.raises(UsageError, match="check answer: "):
        find_check("answer")(make_context({}, text=""))
