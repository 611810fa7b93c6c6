"""A run's audience: one that does not read holds nothing up, and nothing of it is kept in memory."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

import pytest

from codex_multi_role.cli import streams
from codex_multi_role.cli.streams import JsonLines, say


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The ends of a pipe: where it is read, and where it is written."""
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PATIENCE_SECONDS", 0.05)


def test_a_reader_that_reads_nothing_is_given_up(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = JsonLines()
    with os.fdopen(pipe[1], "w") as stdout, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stdout)
        for number in range(10_000):
            write({"type": "warning", "message": f"{number} {'x' * 5_000}"})
    lines = os.read(pipe[0], 1024 * 1024).decode().splitlines()
    assert [json.loads(line)["message"].split()[0] for line in lines[:-1]] == [f"{n}" for n in range(len(lines) - 1)]
    said = capsys.readouterr().err
    assert said == (
        "warning: no more events on standard output: nobody read there for 0.05 s; events.jsonl has them all\n"
    )


def test_words_for_people_that_nobody_reads_are_lost(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    with os.fdopen(pipe[1], "w") as stderr, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", stderr)
        for number in range(1_000):
            say(f"{number} {'x' * 500}")
    assert os.read(pipe[0], 1024 * 1024).startswith(b"0 xxx")
