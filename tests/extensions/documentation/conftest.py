from __future__ import annotations

import pytest

from codex_multi_role.extensions.documentation.mermaid import OWN_PARSER, Judgement


@pytest.fixture
def mermaid_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser in place of Mermaid's, which needs Node: it refuses what does not close its brackets."""

    def judge(_: object, diagrams: list[str]) -> Judgement:
        problems = {each: "Parse error" if each.count("[") != each.count("]") else "" for each in diagrams}
        return Judgement(problems, OWN_PARSER)

    monkeypatch.setattr("codex_multi_role.extensions.documentation.quality.judge_diagrams", judge)
