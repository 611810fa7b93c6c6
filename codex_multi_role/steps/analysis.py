"""The analysis that a handoff refers to, for a role that cannot open files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.run_folder.turn_folder import ANALYSIS, ANALYSIS_PATH

MAX_CHARACTERS = 50_000


def with_analyses(role: RoleSpec, payload: Any, run_folder: Path) -> Any:  # noqa: ANN401 - JSON
    """``payload`` as ``role`` can read it: with the text of each analysis, if all commands of the role are declined."""
    if role.approval_policy != "untrusted" or role.auto_approve.commands:
        return payload
    return _with_texts(payload, run_folder.absolute())


def _with_texts(value: Any, run_folder: Path) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [_with_texts(item, run_folder) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _with_texts(item, run_folder) for key, item in value.items() if key != ANALYSIS_PATH}
    if ANALYSIS_PATH not in value:
        return found
    text = _analysis(value[ANALYSIS_PATH], run_folder)
    return {**found, ANALYSIS_PATH: value[ANALYSIS_PATH]} if text is None else {**found, "analysis_md": text}


def _analysis(named: object, run_folder: Path) -> str | None:
    """The text of a turn's analysis; None for any other path, which a model may have written."""
    path = Path(str(named))
    is_of_run = path.parent.parent.parent == run_folder and ".." not in path.parts
    if not is_of_run or path.name != ANALYSIS or not path.is_file():
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    left_out = len(text) - MAX_CHARACTERS
    return text if left_out <= 0 else f"{text[:MAX_CHARACTERS]}\n[{left_out} characters left out]"
