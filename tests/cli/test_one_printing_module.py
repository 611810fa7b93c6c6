"""One module prints, as ruff sees: whatever a model or a stranger wrote, it controls no terminal and no log."""

from __future__ import annotations

import pytest

from codex_multi_role.cli.output import (
    JsonLines,
    annotate,
    put_json,
    put_json_line,
    put_line,
    put_text,
    put_yaml,
    say,
)
from codex_multi_role.host.workflow_log import command
from tests.support.workflow_log import read_log

HOSTILE = "a\x1b]0;owned\x07\x9b2J\u202eb\u2066\u200f\u061c\udce9\r\nerror: forged"


@pytest.mark.parametrize("put", [put_line, say])
def test_only_the_first_line_begins_at_the_margin(put: object, capsys: pytest.CaptureFixture[str]) -> None:
    put(f"  {HOSTILE}\tc")  # type: ignore[operator]
    printed = "".join(capsys.readouterr())
    assert printed == "  a]0;owned2Jb\n  error: forged   c\n"


@pytest.mark.parametrize("put", [put_line, say])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", ": :error::x"),
        (" \u200b::error::x", " : :error::x"),
        ("#\x1b#[error]x", "## [error]x"),
        ("a\n::error::x", "a\n  : :error::x"),
        ("a\n  b\n    c", "a\n  b\n    c"),
        ("", ""),
    ],
)
def test_cleaning_makes_no_workflow_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], put: object, text: str, shown: str
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    put(text)  # type: ignore[operator]
    assert "".join(capsys.readouterr()) == f"{shown}\n"


def test_workflow_command_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    annotate(command("error", f"#\x00#[x{HOSTILE}", title="\u202et"))
    assert capsys.readouterr().err == "::error title=t::## [xa]0;owned2Jb%0D%0Aerror: forged\n"


def test_own_style_survives_the_cleaning(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_: False)
    put_line("a\x1b[31mb", fg="green")
    assert capsys.readouterr().out == "\x1b[32ma[31mb\x1b[0m\n"


def test_machine_output_is_printable_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    for put in (put_json, put_yaml):
        put({"a\x7f": HOSTILE})
        printed = capsys.readouterr().out
        assert printed.replace("\n", "").isprintable()
        assert printed.isascii()


@pytest.mark.parametrize(("exact", "shown"), [(True, "a\x1b[2J\tb\n\n"), (False, "a[2J    b\n\n")])
def test_text_is_exact_only_on_request(capsys: pytest.CaptureFixture[str], exact: bool, shown: str) -> None:
    put_text("a\x1b[2J\tb\n\n", exact=exact)
    assert capsys.readouterr().out == shown


def test_no_text_of_others_is_a_command_in_a_workflow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "see ##[set-output name=outcome]done and\n::error::owned"

    def all_said() -> str:
        say(told)
        JsonLines()({"summary": told})
        put_json({"summary": told})
        put_json_line({"summary": told})
        put_line(told)
        said = capsys.readouterr()
        return said.out + said.err

    assert len(read_log(all_said())) == 7
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert read_log(all_said()) == []
