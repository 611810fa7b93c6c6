"""Results of checks that contain times, which differ in every run although nothing has changed."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from codex_multi_role.extensions.replays.normalization import PathNames, normalize
from codex_multi_role.host.atomic import write_json
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.reading.json_types import Json

MEASURED = "measured.json"


@dataclass(frozen=True)
class TimedResult:
    """``result`` of the check ``name``. ``workspace``: the snapshot that it read; ``using``: its options and more."""

    name: str
    workspace: str
    using: Json
    result: Json

    @classmethod
    def read(cls, file: Path) -> Self | None:
        """From a file of `written`; None if it is damaged, or another version wrote it."""
        with suppress(TypeError):
            return cls(**read_object(file))
        return None

    @property
    def has_times(self) -> bool:
        """Whether another run could have measured the same and still have another result."""
        text = json.dumps(self.result, ensure_ascii=False)
        return normalize(text) != text

    @property
    def without_times(self) -> tuple[str, ...]:
        """What two measurements of the same have in common."""
        using, result = (json.dumps(each, sort_keys=True, ensure_ascii=False) for each in (self.using, self.result))
        return self.name, self.workspace, using, normalize(result)

    def named(self, names: PathNames) -> Self:
        return replace(self, using=names.named(self.using), result=names.named(self.result))

    def written(self, folder: Path, redact: Redactor) -> Json:
        """Store it for later runs, unless it has secrets; returns the result. Raises `StorageError`."""
        stored = asdict(self)
        if redact.within(stored) == stored:
            write_json(folder / MEASURED, stored)
        return self.result
