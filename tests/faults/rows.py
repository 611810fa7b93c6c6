"""Every known fault of Codex and its surroundings. The list is whole here; `test_rows` sees to it that it stays so."""

from __future__ import annotations

from tests.faults.rows_of_processes import PROCESS_ROWS
from tests.faults.rows_of_protocol import PROTOCOL_ROWS
from tests.faults.rows_of_providers import PROVIDER_ROWS

ROWS = (*PROVIDER_ROWS, *PROCESS_ROWS, *PROTOCOL_ROWS)
