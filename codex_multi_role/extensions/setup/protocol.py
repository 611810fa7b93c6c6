"""The messages of Codex's protocol that are used here, and how another binary's differ.

A binary prints its protocol as JSON Schema (`app-server generate-json-schema`). ``tested_protocol.json`` has a digest
of every message that is sent or read here, as printed by the binary this package is tested with.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from codex_multi_role.errors import CodexStartFailed

TESTED = Path(__file__).with_name("tested_protocol.json")
SCHEMA_SECONDS = 20.0
DIGEST_LENGTH = 16
WORDS_ONLY = ("description", "title")
"""Schema keys that do not affect a message's shape."""

Digests = dict[str, dict[str, str]]
"""Schema file → message (a method, or the file's own name for an answer) → digest."""


def protocol_as_tested() -> Digests:
    """The digests of the binary this package is tested with."""
    digests: Digests = json.loads(TESTED.read_text())
    return digests


def changed_messages(codex: Path) -> list[str]:
    """The messages used here that ``codex`` lacks, or shapes differently from the tested binary.

    Raises `CodexStartFailed` for a binary that prints no protocol.
    """
    tested = protocol_as_tested()
    printed = printed_protocol(codex, {file: list(messages) for file, messages in tested.items()})
    return sorted(
        message
        for file, messages in tested.items()
        for message, digest in messages.items()
        if printed[file].get(message) != digest
    )


def printed_protocol(codex: Path, spoken: Mapping[str, Sequence[str]]) -> Digests:
    """The digests of the ``spoken`` messages (by schema file) as ``codex`` prints them, without those it lacks.

    Raises `CodexStartFailed`.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [str(codex), "app-server", "generate-json-schema", "--experimental", "--out", folder]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=SCHEMA_SECONDS, stdin=subprocess.DEVNULL)
            if not any(Path(folder).iterdir()):
                raise ValueError("it wrote nothing")
            return {file: _digests(Path(folder, f"{file}.json"), messages) for file, messages in spoken.items()}
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise CodexStartFailed(f"{codex} does not print its protocol: {error}") from error


def _digests(path: Path, messages: Sequence[str]) -> dict[str, str]:
    if not path.exists():
        return {}
    schema = json.loads(path.read_text())
    shapes = {_method(option): option for option in schema.get("oneOf", [])} or {path.stem: schema}
    definitions = schema.get("definitions", {})
    return {message: _digest(shapes[message], definitions) for message in messages if message in shapes}


def _method(option: Mapping[str, Any]) -> str:
    (method,) = option["properties"]["method"]["enum"]
    return str(method)


def _digest(shape: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Digest the message's own shape and every definition it reaches."""
    own = {key: value for key, value in shape.items() if key != "definitions"}
    reached: dict[str, Any] = {}
    waiting = _references(own)
    while waiting:
        reached |= {name: definitions[name] for name in waiting}
        waiting = _references(list(reached.values())) - reached.keys()
    return sha256(json.dumps(_shape([own, reached]), sort_keys=True).encode()).hexdigest()[:DIGEST_LENGTH]


def _references(schema: object) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(_references, schema))
    if not isinstance(schema, dict):
        return set()
    found = set().union(*map(_references, schema.values()))
    reference = schema.get("$ref")
    return found | {reference.rpartition("/")[2]} if isinstance(reference, str) else found


def _shape(schema: object) -> object:
    """``schema`` without the texts for people."""
    if isinstance(schema, list):
        return [_shape(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    # A property may have such a name too; its value is then a schema, not a text.
    return {key: _shape(value) for key, value in schema.items() if not (key in WORDS_ONLY and isinstance(value, str))}
