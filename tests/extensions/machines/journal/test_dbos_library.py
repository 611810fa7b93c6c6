from __future__ import annotations

import sys

from codex_multi_role.extensions.machines.journal.dbos_library import DBOS


def test_dbos_is_imported_without_its_library_for_times() -> None:
    """That one asks a program about this Python when it is imported, without a deadline: the run would wait for it."""
    modules = (
        sys.modules[f"{DBOS.__module__.partition('.')[0]}.{name}"] for name in ("_client", "_dbos", "_scheduler")
    )
    assert [vars(module)["croniter"] for module in modules] == [None] * 3
