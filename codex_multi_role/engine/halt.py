"""How a run stops: without a trace in the journal, so that it can be resumed from there."""

from __future__ import annotations

from codex_multi_role.ending import Ending


class RunHalted(BaseException):
    """Leaves the workflow without being recorded.

    The durable engine permanently records what a step or workflow returns and every ``Exception`` it raises, but no
    ``BaseException``. The journal then looks as it does after ``kill -9``. One way to resume covers a crash, an
    interruption, a failed role, and a flow that ended, whose next attempt may have other options.
    """

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.outcome)
        self.ending = ending
