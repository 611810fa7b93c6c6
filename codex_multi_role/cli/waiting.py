"""Waiting until the provider accepts turns again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from codex_multi_role.cli.output import say
from codex_multi_role.errors import QuotaUsedUp, UsageError
from codex_multi_role.presentation.wording import duration

LONGEST_NAP_SECONDS = 30.0


def wait_for_quota(record: Mapping[str, Any], *, quiet: bool) -> None:
    """Sleep until the usage limit that parked the run of this ``run.json`` resets; return at once without one.

    Uses the wall clock, so time in which the machine slept counts. Ctrl-C ends the wait. Raises `UsageError` if the
    reset time is unknown.
    """
    if record.get("outcome") != QuotaUsedUp.reason:
        return
    resets_at = record.get("resets_at")
    if not resets_at:
        raise UsageError(
            f"nobody said when the limit of run {record['run_id']} begins anew: {record['reason']}",
            "Resume it without --wait once it has.",
        )
    end = datetime.fromisoformat(resets_at)
    left = (end - datetime.now(UTC)).total_seconds()
    if left > 0 and not quiet:
        say(f"waiting {duration(left)} until {resets_at}: {record['reason']}")
    while (left := (end - datetime.now(UTC)).total_seconds()) > 0:
        time.sleep(min(left, LONGEST_NAP_SECONDS))
