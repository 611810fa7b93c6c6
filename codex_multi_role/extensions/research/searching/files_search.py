"""The search provider ``files``: the documents of a folder, ranked by SQLite's full-text search over their passages.

An index keeps what was read, so that each file is read once per run, and again only if it has changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from codex_multi_role.extensions.research.searching.document_text import (
    ENDINGS,
    Unreadable,
    language_of,
    read_document,
    shortened,
)
from codex_multi_role.reading.sketches import sketch

MOST_FILES = 5_000
LARGEST_FILE_BYTES = 10 * 1024 * 1024
MOST_BYTES = 200 * 1024 * 1024
MOST_PAGE_BYTES = 30 * 1024 * 1024
"""Limit for finding the main text of HTML pages, at about 1 MB a second; beyond it, all text is read."""
MOST_MEMORY_BYTES = 2 * 1024**3
PASSAGE_CHARACTERS = 1_500
MOST_WORDS = 64
SHORT_WORD = 3
MOST_TOLD = 20
LOCK_SECONDS = 300.0
"""Another search may be reading the folder; the time limit of this one ends it earlier."""

_WORD = re.compile(r"\w+")
_TABLES = """
CREATE TABLE IF NOT EXISTS documents (
  id INTEGER PRIMARY KEY, path TEXT UNIQUE, stamp TEXT, title TEXT, date TEXT, problem TEXT, sketch TEXT,
  cut INTEGER);
CREATE TABLE IF NOT EXISTS notes (note TEXT);
CREATE VIRTUAL TABLE IF NOT EXISTS passages USING fts5(
  title, text, document UNINDEXED, number UNINDEXED, tokenize = "porter unicode61 remove_diacritics 2");
"""
_BEST = """
SELECT document, MIN(score) FROM (
  SELECT document, bm25(passages, 2.0, 1.0) AS score FROM passages WHERE passages MATCH ? ORDER BY score LIMIT 2000)
GROUP BY document ORDER BY MIN(score), document LIMIT ?
"""
_PASSAGES_OF_DOCUMENT = """
SELECT number, text FROM passages WHERE passages MATCH ? AND document = ? ORDER BY bm25(passages, 2.0, 1.0), number
"""


def search(folder: Path, index: Path, query: str, count: int, characters: int, language: str = "") -> dict[str, Any]:
    """Rank the documents of ``folder`` for ``query``; an empty query only reads the folder.

    Returns ``{results: [{title, address, text, date, sketch, shortened}], documents, unread: [{address, reason}],
    notes}``, best result first. ``text`` is what the document says on the query, in at most ``characters``; ``sketch``
    is of all text. ``unread`` names the first of the skipped files. Raises OSError for a folder that cannot be read.
    """
    with closing(sqlite3.connect(index, timeout=LOCK_SECONDS, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = OFF")  # what a power cut takes can be read again
        database.execute("BEGIN IMMEDIATE")
        for statement in _TABLES.split(";\n"):
            database.execute(statement)
        _refresh(database, folder)
        database.execute("COMMIT")
        terms = " OR ".join(f'"{word}"' for word in dict.fromkeys(_significant(_WORD.findall(query)[:MOST_WORDS])))
        best = [document for document, _ in database.execute(_BEST, (terms, MOST_FILES))] if terms else []
        results = (_result(database, document, terms, characters) for document in best)
        unread = database.execute("SELECT path, problem FROM documents WHERE problem != '' ORDER BY path").fetchall()
        return {
            "results": list(_limited(results, count, language)),
            "documents": database.execute("SELECT COUNT(*) FROM documents WHERE problem = ''").fetchone()[0],
            "unread": [{"address": path, "reason": problem} for path, problem in unread[:MOST_TOLD]],
            "notes": [note for (note,) in database.execute("SELECT note FROM notes")],
        }


def _limited(results: Iterator[dict[str, Any]], count: int, language: str) -> Iterator[dict[str, Any]]:
    """The first ``count`` results in ``language`` or in an unknown one, and a few others to report."""
    others = MOST_TOLD
    for result in results:
        if count <= 0:
            return
        counts = not language or language_of(result["text"]) in ("", language)
        count -= counts
        others -= not counts
        if counts or others >= 0:
            yield result


def _significant(words: list[str]) -> list[str]:
    """Drop short words such as "the", unless there are no others: documents that share only these say nothing."""
    return [word for word in words if len(word) > SHORT_WORD or not word.islower()] or words


def _refresh(database: sqlite3.Connection, folder: Path) -> None:
    known = dict(database.execute("SELECT path, stamp FROM documents"))
    notes: list[str] = []
    current = {
        path: (f"{status.st_size} {status.st_mtime_ns}", status.st_size) for path, status in _files(folder, notes)
    }
    for path in known.keys() - current.keys():
        _remove(database, path)
    pages = 0
    for path, (stamp, size) in current.items():
        if known.get(path) != stamp:
            if path in known:
                _remove(database, path)
            pages += size if ENDINGS[Path(path).suffix.lower()] == "html" else 0
            _add(database, folder, path, stamp, size, pages <= MOST_PAGE_BYTES)
    if pages > MOST_PAGE_BYTES:
        notes.append(f"HTML pages beyond {MOST_PAGE_BYTES} bytes were read with their navigation")
    database.execute("DELETE FROM notes")
    database.executemany("INSERT INTO notes VALUES (?)", [(note,) for note in notes])


def _files(folder: Path, notes: list[str]) -> Iterator[tuple[str, os.stat_result]]:
    """The documents below ``folder`` by name, folder by folder; links are not followed. Raises OSError."""
    os.listdir(folder)  # noqa: PTH208 - raises for an unreadable folder; os.walk does not
    files = size = 0
    for place, names, entries in os.walk(folder):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for entry in sorted(entries):
            path = Path(place, entry)
            if entry.startswith(".") or path.suffix.lower() not in ENDINGS:
                continue
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode):
                continue
            files += 1
            size += min(status.st_size, LARGEST_FILE_BYTES)
            if files > MOST_FILES or size > MOST_BYTES:
                notes.append(f"only the first {files - 1} documents were read: {MOST_FILES} files, {MOST_BYTES} bytes")
                return
            name = path.relative_to(folder).as_posix()
            if _is_text(name):
                yield name, status
            else:
                notes.append(f"left out, because its name is not text: {name!r}")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _remove(database: sqlite3.Connection, path: str) -> None:
    database.execute("DELETE FROM passages WHERE document IN (SELECT id FROM documents WHERE path = ?)", (path,))
    database.execute("DELETE FROM documents WHERE path = ?", (path,))


def _add(database: sqlite3.Connection, folder: Path, path: str, stamp: str, size: int, main_text: bool) -> None:
    title = date = text = problem = ""
    cut = False
    try:
        if size > LARGEST_FILE_BYTES:
            raise Unreadable(f"larger than {LARGEST_FILE_BYTES} bytes")
        with (folder / path).open("rb") as file:
            document = read_document(Path(path), file.read(LARGEST_FILE_BYTES), main_text=main_text)
        title, date, text, cut = document.title, document.date, document.text, document.cut
    except (Unreadable, OSError, MemoryError, RecursionError) as error:
        problem = getattr(error, "strerror", None) or str(error) or type(error).__name__
    row = (path, stamp, title, date, problem, json.dumps(sketch(text)), cut)
    added = database.execute("INSERT INTO documents VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row)
    rows = [(title, passage, added.lastrowid, number) for number, passage in enumerate(_passages(text))]
    database.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", rows)


def _passages(text: str) -> Iterator[str]:
    """``text`` in pieces of about `PASSAGE_CHARACTERS`, cut after a paragraph, a line or a word if possible."""
    while text:
        end = PASSAGE_CHARACTERS
        if len(text) > end:
            cuts = (text.rfind(mark, end // 2, end) for mark in ("\n\n", "\n", ". ", " "))
            end = next((cut + 1 for cut in cuts if cut > 0), end)
        yield text[:end]
        text = text[end:]


def _result(database: sqlite3.Connection, document: int, terms: str, characters: int) -> dict[str, Any]:
    path, title, date, whole, cut = database.execute(
        "SELECT path, title, date, sketch, cut FROM documents WHERE id = ?", (document,)
    ).fetchone()
    (length,) = database.execute("SELECT SUM(LENGTH(text)) FROM passages WHERE document = ?", (document,)).fetchone()
    best = database.execute(_PASSAGES_OF_DOCUMENT, (terms, document)).fetchmany(
        max(1, characters // PASSAGE_CHARACTERS)
    )
    text = "".join(_joined(sorted(best)))[:characters]
    return {
        "title": title,
        "address": path,
        "text": text,
        "date": date,
        "sketch": json.loads(whole),
        "shortened": shortened(text, length, "more than " if cut else ""),
    }


def _joined(passages: list[tuple[int, str]]) -> Iterator[str]:
    """The passages in order; gaps between them are marked."""
    for index, (number, text) in enumerate(passages):
        if index and passages[index - 1][0] != number - 1:
            yield "\n[…]\n"
        yield text


def main() -> None:
    """Run `search` with its arguments as JSON in the first argument."""
    with contextlib.suppress(ValueError, OSError):  # not every system supports the limit
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    given = json.loads(sys.argv[1])
    folder, index = Path(given.pop("folder")), Path(given.pop("index"))
    try:
        print(json.dumps(search(folder, index, **given)))  # noqa: T201 - what the parent reads
    except OSError as error:
        sys.exit(f"{folder}: {error.strerror}")
    except sqlite3.Error as error:
        sys.exit(f"{index}: {error}")


if __name__ == "__main__":
    main()
