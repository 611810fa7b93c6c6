"""No secret gets into what is stored, plain or inside JSON."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import string
import uuid
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from codex_multi_role.host.redaction import SHAPES, Redactor, without_secrets

ALPHANUMERIC = string.ascii_letters + string.digits
TEXT = st.text(st.characters(codec="utf-8"))
BASE64 = ALPHANUMERIC + "+/"
WORD = ALPHANUMERIC + "_-"


def shape(before: str, letters: str, least: int, most: int, after: str = "") -> st.SearchStrategy[str]:
    return st.text(letters, min_size=least, max_size=most).map(lambda text: f"{before}{text}{after}")


PARTS_OF_JWT = shape("eyJ", WORD, 10, 40)
SECRETS = st.one_of(
    shape("sk-", WORD, 14, 60, "a7"),
    shape("sk_live_", ALPHANUMERIC, 16, 40),
    shape("ghp_", ALPHANUMERIC, 20, 60),
    shape("github_pat_", ALPHANUMERIC + "_", 22, 82, "a"),
    shape("glpat-", WORD, 20, 30, "a"),
    shape("AKIA", string.ascii_uppercase + string.digits, 16, 16),
    shape("ASIA", string.ascii_uppercase + string.digits, 16, 16),
    shape("AIza", WORD, 34, 34, "a"),
    shape("ya29.", WORD, 20, 60, "a"),
    shape("GOCSPX-", WORD, 27, 27, "a"),
    shape("xoxb-", ALPHANUMERIC + "-", 10, 60, "a"),
    shape("xapp-1-", ALPHANUMERIC + "-", 10, 60, "a"),
    shape("hooks.slack.com/services/", ALPHANUMERIC + "/", 20, 60, "a"),
    shape("hf_", ALPHANUMERIC, 30, 40),
    shape("npm_", ALPHANUMERIC, 36, 36),
    shape("pypi-AgEIcHlwaS5vcmc", WORD, 50, 120, "a"),
    st.tuples(PARTS_OF_JWT, PARTS_OF_JWT, shape("", WORD, 10, 40, "a")).map(".".join),
    shape("Bearer 7", ALPHANUMERIC + "._~+/-", 15, 60, "a"),
    st.lists(st.text(BASE64, min_size=64, max_size=64), min_size=1, max_size=8).map(
        lambda lines: "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "Zg==", "-----END RSA PRIVATE KEY-----"])
    ),
)


def test_other_variables_and_short_values_stay_readable() -> None:
    redact = Redactor({"HOME": "/home/somebody", "SOME_KEY": "1234567", "EMPTY_TOKEN": ""})
    assert redact("/home/somebody 1234567") == "/home/somebody 1234567"


def test_of_two_secrets_the_longer_is_masked_whole() -> None:
    assert Redactor({"A_KEY": "abcdefgh", "B_KEY": "abcdefghij"})("abcdefghij") == "[redacted]"


@pytest.mark.parametrize(
    "text",
    [
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "123e4567-e89b-12d3-a456-426614174000",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "sk-toggleable__content sk-estimator-doc-link",
        *("task-of-the-whole-team-is-long", "sk-short", "AKIA", "desk-0123456789abcdefgh"),
        "!function(e,t){var n=e.key_,hf_=t.npm_;for(var r in n)n[r]=hf_[r]||0}(window,{glpat:1,AKIA:'x'});",
        "Bearer authentication-is-described-below, Basic understanding",
        'PEM = "-----BEGIN PRIVATE KEY-----"\nif PEM in text:\n    raise ValueError(text)\n',
        "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ0ZQ\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    ],
)
def test_words_hashes_images_and_code_stay(text: str) -> None:
    assert Redactor({})(text) == text


@given(data=st.binary(max_size=2000))
def test_no_encoded_file_is_taken_for_a_key(data: bytes) -> None:
    identity = uuid.UUID(bytes=hashlib.md5(data).digest())
    text = f"{base64.b64encode(data).decode()} {data.hex()} {hashlib.sha256(data).hexdigest()} {identity}"
    assert Redactor({})(text) == text


TOKEN = "eyJaaaaaaaaaa.eyJaaaaaaaaaa.aaaaaaaaaa"


@given(before=TEXT, secret=SECRETS, after=TEXT)
@example(before="-", secret=TOKEN, after="")
@example(before="my_token_", secret=TOKEN, after="-_.")
@example(before="eyJ-eyJaaaaaaaaaa.eyJ_", secret=TOKEN, after=".eyJ")
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
    assume(not os.path.exists(secret))  # noqa: PTH110 - the path of a file here is no secret
    line = json.dumps(["", before + secret + after, ""], ensure_ascii=False)
    stored = Redactor({"MY_SECRET": secret})(line)
    assert json.dumps(secret, ensure_ascii=False)[1:-1] not in stored.replace("[redacted]", "\0")


NAMES = "OPENAI_API_KEY github_token CLIENT_SECRET DB_PASSWORD PASSWD AWS_CREDENTIALS KEY MYSQL_PWD DB_PWD PGPASS"
NAMES += " PGPASSFILE SMTP_PASS SSHPASS REDISCLI_AUTH SENTRY_DSN DSN AZURE_PAT AZURE_STORAGE_CONNECTION_STRING"
NAMES += " LDAP_BINDPW MY_PW LOGIN_PASSCODE AWS_SECRET_ACCESS_KEY PGPASSWORD MY_CREDENTIALS NPM_AUTH GPG_PASSPHRASE"
NAMES += " CODEX_MULTI_ROLE_DATABASE_URL HTTP_AUTHORIZATION SSH_AUTH_SOCK OTEL_EXPORTER_OTLP_HEADERS"
NAMES += " OTEL_EXPORTER_OTLP_TRACES_HEADERS"


@pytest.mark.parametrize("name", NAMES.split())
def test_what_the_environment_calls_a_secret_is_masked_and_hidden(name: str) -> None:
    assert without_secrets({name: "hunter2hunter2"}) == {}
    if "OTLP" not in name:
        assert Redactor({name: "hunter2hunter2"})("hunter2hunter2, hunter2hunter2!") == "[redacted], [redacted]!"


def test_names_that_only_resemble_one_are_kept() -> None:
    """A variable is also secret by what its value looks like."""
    names = "PWD OLDPWD BYPASS COMPASS MY_COMPASS PASSENGER PATH PATTERN MY_PATH UPWARD DSNX HOME LANG GIT_AUTHOR_NAME"
    kept = dict.fromkeys([*names.split(), "CODEX_HOME", "PYTHONPATH", "XAUTHORITY"], "x")
    shapes = {"REMOTE": "https://ghp_0123456789abcdefghij@github.com/a/b", "NOTE": "Bearer 0123456789abcdefghij"}
    assert without_secrets({**shapes, **kept}) == kept


LOGINS = [
    ("postgres://me:hunter2@db.local:5432/x", "postgres://me:[redacted]@db.local:5432/x"),
    ("redis://:p@ss:word@cache", "redis://:[redacted]@cache"),
    ("smtp://me@example.org:pw@mail", "smtp://me@example.org:[redacted]@mail"),
    (
        '{"a":"amqp+ssl://u:p@h","b":"http://localhost:80","c":"x@y"}',
        '{"a":"amqp+ssl://u:[redacted]@h","b":"http://localhost:80","c":"x@y"}',
    ),
]


@pytest.mark.parametrize(("text", "masked"), LOGINS)
def test_password_in_an_address_is_masked_whoever_knows_it(text: str, masked: str) -> None:
    assert Redactor({})(f"see {text}, or not") == f"see {masked}, or not"
    assert without_secrets({"HARMLESS": text}) == {}


def test_password_in_environment_url_is_masked_on_its_own() -> None:
    """The percent-decoded password is also masked."""
    redact = Redactor({"REMOTE": "mysql://me:hunter%2Fhunter@db/x"})
    assert redact("hunter%2Fhunter, hunter/hunter, mysql://me:hunter%2Fhunter@db/x") == ", ".join(["[redacted]"] * 3)


@pytest.mark.parametrize(
    "text", ["http://localhost:8080/a@b", "see https://a.b/c:d@e", "a://b c:d@e", "mailto:a:b@c", "x:y@z"]
)
def test_addresses_without_a_password_stay(text: str) -> None:
    assert Redactor({})(text) == text
    assert without_secrets({"ADDRESS": text}) == {"ADDRESS": text}


@given(text=st.text(string.ascii_lowercase + " .,", max_size=200))
def test_plain_prose_is_left_as_it_is(text: str) -> None:
    assert Redactor({"MY_TOKEN": "0123456789"})(text) == text


def test_private_key_is_masked_whole_and_when_cut_short() -> None:
    """Its headers are masked with it."""
    key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,3F17F5316E2BAC89\n\n"
    key += f"{'MIIEowIBAAKCAQEAx7' * 4}\n{'ab/+' * 16}\nZm9v\n"
    redact = Redactor({})
    assert redact(f"before\n{key}-----END RSA PRIVATE KEY-----\nafter") == "before\n[redacted]\nafter"
    assert "MIIEow" not in redact(f"before\n{key}")
    nested = json.dumps(json.dumps({"key": f"{key}-----END RSA PRIVATE KEY-----"}))
    assert json.loads(json.loads(redact(nested))) == {"key": "[redacted]"}


def test_variable_with_file_path_is_not_secret(tmp_path: Path) -> None:
    assert Redactor({"SECRETS_FOLDER": str(tmp_path)})(f"see {tmp_path}/x") == f"see {tmp_path}/x"


def test_each_header_that_is_sent_with_telemetry_is_a_secret() -> None:
    redact = Redactor(
        {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20hunter2%2Bhunter2, x-team = hunter3hunter3"}
    )
    assert redact("Basic hunter2+hunter2, Basic%20hunter2%2Bhunter2, hunter3hunter3") == (
        "Basic [redacted], [redacted], [redacted]"
    )


def test_every_text_within_a_value_is_masked_and_its_keys_stay() -> None:
    value = {"MY_KEY": ["hunter2hunter2", 1, {"a": "hunter2hunter2!"}], "b": None}
    assert Redactor({"MY_KEY": "hunter2hunter2"}).within(value) == {
        "MY_KEY": ["[redacted]", 1, {"a": "[redacted]!"}],
        "b": None,
    }


@pytest.mark.parametrize(
    "piece",
    [
        *("sk-", "eyJ-", "eyJaaaaaaaaaa.", "-----BEGIN ", "A: b ", "Bearer ", "eyJaaaaaaaaaa.eyJaaaaaaaaaa"),
        *("eyJ_.eyJ_", "a://", "a://b:c", "a://b:@", "xox", "gl", "\\n", "a" * 15 + "\n", "\\"),
    ],
)
def test_no_text_makes_the_search_take_for_ever(piece: str) -> None:
    for begin in ("", "-----BEGIN RSA PRIVATE KEY-----\n", "Bearer "):
        assert Redactor({})(begin + piece * 30_000)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=settings().max_examples // 8)
@given(st.data())
def test_no_shape_is_without_what_a_search_needs(shape: str, data: st.DataObject) -> None:
    found = data.draw(st.from_regex(shape))
    assert any(part in found.casefold() for part in SHAPES[shape])
