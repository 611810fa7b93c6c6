"""7. No text of a model is guessed: an answer is right as it stands, exactly repaired, or asked for again."""

from __future__ import annotations

from tests.promises.breakage import textual

broken = textual(7)
REPAIR = "replies/test_repair.py"
REFUSALS = "engine/test_refusals.py"

ANSWERS = (
    broken(
        "a string that may have ended too early is not taken",
        "replies/repair.py",
        '        if self._last in ("double", "single"):\n',
        "        if False:\n",
        (f"{REPAIR}::test_string_is_never_guessed",),
    ),
    broken(
        "what is left behind an object is looked at",
        "replies/extract.py",
        "if self._latest is None or _is_over(text, behind, end, self._latest):",
        "if True:",
        ("replies/test_extract.py::test_part_is_never_taken_for_the_whole",),
    ),
    broken(
        "of several answers none is picked",
        "replies/reply.py",
        "    if len(good) > 1:\n",
        "    if len(good) > 99:\n",
        ("replies/test_reply.py::test_several_objects_that_could_be_meant_are_asked_about",),
    ),
    broken(
        "a refusal is no success",
        "steps/turn.py",
        "        if reply.refusal:\n",
        "        if False:\n",
        (f"{REFUSALS}::test_refused_step_fails_the_run_and_resume_asks_again",),
    ),
)
