"""Texts as they go into a page: no secret and no part of one, and what is cut says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role.extensions.report.parts import Reader, Text, embedded
from codex_multi_role.host.redaction import Redactor

CUT_AT = 4000
SECRET = "hunter2-" + "0123456789" * 16
REDACT = Redactor({"MY_SECRET": SECRET})


def read(folder: Path, text: str) -> Text:
    path = folder / "changes.patch"
    path.write_text(text)
    found = Reader(folder, REDACT, CUT_AT).text(path, exact=True)
    assert found is not None
    return found


def test_text_that_is_shorter_without_its_secrets_is_still_cut(tmp_path: Path) -> None:
    whole = f"{SECRET}\n" * 600
    text = read(tmp_path, whole)
    assert text.of == len(whole)
    assert set(text.text.splitlines()) == {"[redacted]"}


@pytest.mark.parametrize("before", [0, 1, 7, 8, 100, len(SECRET) - 1, len(SECRET)])
def test_no_part_of_a_secret_stays_where_it_lies_across_the_cut(tmp_path: Path, before: int) -> None:
    words = "." * (CUT_AT - before)
    text = read(tmp_path, words + SECRET + "." * CUT_AT)
    assert text.text.removesuffix("[redacted]") == words
    assert text.of == 2 * CUT_AT - before + len(SECRET)


def test_size_of_cut_text_is_given_in_bytes() -> None:
    text = Reader(Path(), REDACT, CUT_AT).cut("é" * 5000)
    assert (len(text.text), text.of) == (CUT_AT, 10_000)


def test_numbers_that_no_browser_reads_are_texts() -> None:
    value = json.loads('[{"text": "</script>", "value": {"a": NaN, "b": [-Infinity, 1e999], "c": 1.5}}]')
    read = json.loads(embedded(value), parse_constant=pytest.fail)
    assert read == [{"text": "</script>", "value": {"a": "NaN", "b": ["-Infinity", "Infinity"], "c": 1.5}}]
