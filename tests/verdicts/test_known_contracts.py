"""What is derived for flows that exist. Their recorded right answers are played in the tests of workflows and examples.

None of them is refused: their playbooks have no answers to repair turns.
"""

from __future__ import annotations

import pytest

from tests.verdicts.known_contracts import FILE, known_contracts


@pytest.mark.extensions
@pytest.mark.real  # takes seconds
def test_derived_contracts_are_those_that_were_looked_at() -> None:
    assert known_contracts() == FILE.read_text(encoding="utf-8")
