"""DBOS, imported without its library for times of day, and without its pickles: its rows are JSON.

No run has a schedule, and that library asks the program ``file`` about the Python that imports it, wherever PATH finds
it and without a deadline. A pickle executes what it says when it is read, and each row itself says whether it is one,
so DBOS's own way to read pickles is taken out.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from codex_multi_role.errors import StorageError
from codex_multi_role.host.importing import without_module

with without_module("croniter", croniter=None):
    from dbos import DBOS, DBOSClient, Serializer, SetWorkflowID, StepOptions, error
    from dbos._serialization import DefaultSerializer

DBOSBaseException = error.DBOSBaseException
"""What DBOS raises past `except Exception`: the workflow was cancelled from outside, or another process works on it."""


class JsonRows(Serializer):
    """Values as ASCII, which every database stores as it is."""

    def name(self) -> str:
        return "json"

    def serialize(self, data: Any) -> str:  # noqa: ANN401 - as DBOS declares it
        return json.dumps(data, default=str)  # errors of DBOS itself, for people

    def deserialize(cls, serialized_data: str) -> Any:  # noqa: ANN401, N805 - as DBOS declares it
        try:
            return json.loads(serialized_data)
        except ValueError:
            _refuse()


def _refuse(*_: object) -> NoReturn:
    raise refusal("a row")


def refusal(whose: str) -> StorageError:
    """The error for rows of another kind."""
    return StorageError(
        f"{whose} of the journal is not JSON, as earlier versions wrote it, and is not read: it could execute anything",
        "If you trust whoever can write to the database, use the version of codex-multi-role that `run.json` names.",
    )


DefaultSerializer.serialize = DefaultSerializer.deserialize = _refuse  # type: ignore[method-assign,assignment]
JSON_ROWS = JsonRows()

__all__ = ["DBOS", "JSON_ROWS", "DBOSBaseException", "DBOSClient", "SetWorkflowID", "StepOptions", "refusal"]
