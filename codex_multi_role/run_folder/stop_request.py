"""What a person wants of a run that works: that it stops, or pauses. Its own process reads this, wherever that is.

The address is the run: a process may work on several, and be somebody else's program.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from codex_multi_role.host.atomic import write_json
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_folder.typed_answers import user_name


@dataclass(frozen=True)
class StopRequest:
    """``session``: which one is meant, as in ``owner.json``: a later one does not stop. ``at``: ISO 8601, UTC.

    ``pauses``: the turns at work are finished and recorded first. ``hurries``: the programs at work are killed.
    """

    session: str
    by: str
    at: str
    pauses: bool = False
    hurries: bool = False


class StopRequests:
    """Those of the run in ``run_folder``; the latest counts."""

    def __init__(self, run_folder: Path) -> None:
        self._path = run_folder / "stop.json"

    def find(self, session: str) -> StopRequest | None:
        """What is requested of this session."""
        try:
            request = StopRequest(**read_object(self._path))
        except TypeError:  # nothing is, or the file is damaged
            return None
        return request if request.session == session else None

    def request(self, session: str, *, pauses: bool = False) -> StopRequest:
        """In the name of this process's user. Raises `StorageError`."""
        request = StopRequest(session, user_name(), now(), pauses)
        write_json(self._path, asdict(request))
        return request

    def hurry(self, request: StopRequest) -> None:
        """Raises `StorageError`."""
        write_json(self._path, asdict(replace(request, hurries=True)))
