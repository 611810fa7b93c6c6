"""``--database-url``: the option that machines add to a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codex_multi_role.extensions.machines.journal.database_url import check_database_url
from codex_multi_role.option import Section, Use, option
from codex_multi_role.run_options import AddedOptions, RunOptions


@dataclass(frozen=True, kw_only=True)
class MachineOptions(AddedOptions):
    """Where a run that many machines work on is recorded."""

    section: ClassVar = Section.TEAM

    database_url: str | None = option(
        None,
        "Store the journal in this Postgres database.",
        "URL",
        shown_default="a file in the run folder",
        use=Use.COMMON | Use.LOCAL | Use.TRUST,
        is_set_once=True,
    )

    def check(self, options: RunOptions) -> None:
        """Check the address."""
        if self.database_url is not None:
            check_database_url(self.database_url)
