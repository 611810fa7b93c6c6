from __future__ import annotations

import pytest

from codex_multi_role.extensions.web.forms import in_form_words


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (
            "error: Invalid value for '--cycles': 'x' is no whole number\nhint: See `codex-multi-role run --help`.",
            "Cycles: 'x' is no whole number",
        ),
        (
            'error: missing goal\nhint: Set it with --goal "…" or --goal-file FILE.',
            "missing goal\nFill in “Goal”.",
        ),
        ("error: Invalid value for '--max-turns': 'x' is not a number.", "Max turns: 'x' is not a number."),
        ("hint: Set --input target_coverage=<number>.", "Fill in “target coverage”."),
        ("hint: Set --input 'wanted=[a, b]'.", "Fill in “wanted”."),
        ("Name a folder with --workspace.", "Name a folder with “Workspace”."),
        ("the option --goalkeeper stays, and so does --run-id", "the option --goalkeeper stays, and so does --run-id"),
    ],
)
def test_error_names_the_fields_of_the_form(output: str, words: str) -> None:
    assert in_form_words(output) == words
