"""No secret gets into what is stored, plain or inside JSON."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.run_folder import Redactor

ALPHANUMERIC = string.ascii_letters + string.digits
TEXT = st.text(st.characters(codec="utf-8"))
SECRETS = st.one_of(
    st.text(ALPHANUMERIC + "_-", min_size=15, max_size=60).map(lambda text: f"sk-{text}a"),
    st.text(ALPHANUMERIC, min_size=20, max_size=60).map(lambda text: f"ghp_{text}"),
    st.text(string.ascii_uppercase + string.digits, min_size=16, max_size=16).map(lambda text: f"AKIA{text}"),
)


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "github_token", "CLIENT_SECRET", "DB_PASSWORD", "PASSWD", "AWS_CREDENTIALS", "KEY"]
)
def test_the_value_of_what_the_environment_calls_a_secret_is_masked(name: str) -> None:
    assert Redactor({name: "hunter2hunter2"})("it is hunter2hunter2, twice: hunter2hunter2") == (
        "it is [redacted], twice: [redacted]"
    )


def test_other_variables_and_short_values_stay_readable() -> None:
    redact = Redactor({"HOME": "/home/somebody", "SOME_KEY": "1234567", "EMPTY_TOKEN": ""})
    assert redact("/home/somebody 1234567") == "/home/somebody 1234567"


def test_of_two_secrets_the_longer_is_masked_whole() -> None:
    assert Redactor({"A_KEY": "abcdefgh", "B_KEY": "abcdefghij"})("abcdefghij") == "[redacted]"


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-AbCdEfGhIjKlMnOp",
        "ghp_0123456789abcdefghij",
        "gho_0123456789abcdefghij",
        "AKIAABCDEFGHIJKLMNOP",
    ],
)
def test_what_looks_like_a_key_is_masked_whoever_knows_it(text: str) -> None:
    assert Redactor({})(f"key={text}, {text}") == "key=[redacted], [redacted]"


@pytest.mark.parametrize("text", ["task-of-the-whole-team-is-long", "sk-short", "AKIA", "desk-0123456789abcdefgh"])
def test_words_that_only_resemble_a_key_stay(text: str) -> None:
    assert Redactor({})(text) == text


@given(before=TEXT, secret=SECRETS, after=TEXT)
def test_no_key_survives_between_whatever_stands_around_it(before: str, secret: str, after: str) -> None:
    if before[-1:] in ALPHANUMERIC and before:
        before += "\n"
    if after[:1] in ALPHANUMERIC:
        after = " " + after
    redact = Redactor({})
    assert secret not in redact(before + secret + after)
    stored = redact(json.dumps({"text": before + secret + after}, ensure_ascii=False))
    assert secret not in json.loads(stored)["text"]


@given(before=TEXT, secret=st.text(st.characters(codec="utf-8"), min_size=8), after=TEXT)
def test_no_value_of_the_environment_survives_in_a_line_of_json(before: str, secret: str, after: str) -> None:
    line = json.dumps(["", before + secret + after, ""], ensure_ascii=False)
    stored = Redactor({"MY_SECRET": secret})(line)
    assert json.dumps(secret, ensure_ascii=False)[1:-1] not in stored.replace("[redacted]", "\0")


@given(text=st.text(string.ascii_lowercase + " .,", max_size=200))
def test_plain_prose_is_left_as_it_is(text: str) -> None:
    assert Redactor({"MY_TOKEN": "0123456789"})(text) == text
