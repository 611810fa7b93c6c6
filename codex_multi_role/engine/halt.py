"""How a run stops: without a trace in the journal, so that it can go on from there."""

from __future__ import annotations

from codex_multi_role.ending import Ending


class RunHalted(BaseException):
    """Leaves the workflow without being recorded.

    The durable engine records for good what a step or workflow returns and every ``Exception`` it raises; a
    ``BaseException`` passes it by. The journal then looks as after ``kill -9``, and one way to resume serves a crash,
    an interruption, a failed role, and a flow that ended, whose next try may have other options.
    """

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.outcome)
        self.ending = ending
