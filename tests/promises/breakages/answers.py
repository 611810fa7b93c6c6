"""7. No text of a model is guessed: an answer is right as it stands, exactly repaired, or asked for again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from codex_multi_role.replies.extract import _is_over
from codex_multi_role.replies.fitting import error_in, is_refusal
from codex_multi_role.replies.repair import TolerantReader
from codex_multi_role.replies.reply import _choose
from codex_multi_role.steps.turn import Attempt
from tests.promises.breakage import Broken
from tests.promises.change import replaced, returns

if TYPE_CHECKING:
    from codex_multi_role.replies.repair import _OpenBracket

REPAIR = "replies/test_repair.py"
REFUSALS = "engine/test_contracts.py"


def _after_any_string(check: Callable[..., None], self: TolerantReader, kind: str, top: _OpenBracket) -> None:
    if self._last in ("double", "single"):
        self._last = "word"
    check(self, kind, top)


ANSWERS: Broken = {
    "a string that may have ended too early is not taken": (
        replaced(TolerantReader._check_missing_comma, _after_any_string),
        f"{REPAIR}::test_string_or_structure_is_never_guessed",
    ),
    "what is left behind an object is looked at": (
        returns(_is_over, True),
        "replies/test_extract.py::test_part_is_never_taken_for_the_whole",
    ),
    "of several answers none is picked": (
        replaced(_choose, lambda choose, replies: choose(replies[-1:])),
        "replies/test_reply.py::test_several_objects_that_could_be_meant_are_asked_about",
    ),
    "a refusal is no success": (
        replaced(
            Attempt._ending,
            lambda ending, self, outcome, reply: ending(self, outcome, reply and replace(reply, refusal="")),
        ),
        f"{REFUSALS}::test_refused_step_fails_the_run_and_resume_asks_again",
    ),
    "an answer that has an error as well is not DONE": (
        returns(error_in, ""),
        f"{REFUSALS}::test_done_beside_an_error_is_a_handoff_that_does_not_end_the_run",
    ),
    "an answer that fits is no refusal": (
        returns(is_refusal, True),
        "replies/test_small_models.py::test_every_bound_answer_that_fits_is_a_handoff",
    ),
}
