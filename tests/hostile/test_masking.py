"""Secrets in names and connection strings: masked in texts, kept from programs; and harmless ones that look alike."""

from __future__ import annotations

import json

import pytest

from codex_multi_role.host.redaction import MASK, Redactor, without_secrets

VALUE = "hunter2hunter2"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
SECRET_NAMES = [
    *("COOKIE", "COOKIES", "HTTP_COOKIE", "SESSION_COOKIE", "cookie", "MY_COOKIE_2", "COOKIE_VALUE", "GITHUB_COOKIE"),
    *("SESSION_ID", "SESSIONID", "session_id", "JSESSIONID", "PHPSESSID", "APP_SESSION_ID", "SESS_ID"),
    *("OTP", "NPM_CONFIG_OTP", "OTP_CODE", "TOTP", "TOTP_SEED", "HOTP", "my_otp"),
]


HARMLESS_NAMES = [
    *("COOKIECUTTER_CONFIG", "COOKIECUTTERS_DIR", "SESSION_COOKIE_NAME", "COOKIE_DOMAIN", "COOKIE_SECURE"),
    *("COOKIE_SAMESITE", "CSRF_COOKIE_AGE", "COOKIE_MAX_AGE", "XDG_SESSION_ID", "TERM_SESSION_ID"),
    *("SECURITYSESSIONID", "SESSION_IDLE_SECONDS", "SESSION_MANAGER", "DESKTOP_SESSION", "POSSESSION_IDEA"),
    *("OTP_VERSION", "ERLANG_OTP_VERSION", "LAPTOP", "TOTPOINTS", "OPTIONS", "OTPX"),
]


def test_values_of_sessions_and_one_time_passwords_are_secrets_and_no_others() -> None:
    named = dict.fromkeys((*SECRET_NAMES, *HARMLESS_NAMES), VALUE)
    assert [*without_secrets(named)] == HARMLESS_NAMES
    masked = [name for name in named if Redactor({name: VALUE})(f"it is {VALUE}") == f"it is {MASK}"]
    assert masked == SECRET_NAMES


def test_each_cookie_of_a_header_is_a_secret() -> None:
    redact = Redactor({"HTTP_COOKIE": f"session={VALUE}; csrf=0123%2B456789"})
    assert redact(f"{VALUE} and 0123%2B456789 and 0123+456789") == f"{MASK} and {MASK} and {MASK}"


CONNECTIONS = {
    "storage": f"DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={KEY};EndpointSuffix=core.example",
    "storage alone": f"AccountKey={KEY}",
    "storage in lower case": f"accountkey={KEY}",
    "bus": f"Endpoint=sb://shop.example/;SharedAccessKeyName=Root;SharedAccessKey={KEY[:43]}=",
    "events": f"Endpoint=https://shop.example/;AccessKey={KEY};Version=1.0",
    "signed address": f"https://shop.example/a?sv=2024-01-01&sp=r&sig={KEY.replace('/', '%2F').replace('=', '%3D')}",
    "odbc": "Driver={x};Server=db;Uid=me;Pwd=pa55word!x;",
    "sql": "Server=tcp:db,1433;User ID=me;Password=pa55word!x;Encrypt=True",
    "sql with blanks": "Server=db; User=me; Password=pa55word!x; Encrypt=True",
    "mysql": "server=db;uid=me;pwd=pa55word!x",
}


def _hidden_in(text: str) -> list[str]:
    return [part for part in (KEY[:43], KEY.replace("/", "%2F")[:60], "pa55word!x") if part in text]


@pytest.mark.parametrize("name", CONNECTIONS)
@pytest.mark.parametrize("wrapped", ["{}", '{{"a": "{}"}}', "x\n{}\ny", "'{}'", "export DB='{}'", "<a>{}</a>"])
def test_secrets_in_connection_strings_are_masked_wherever_they_are(name: str, wrapped: str) -> None:
    text = wrapped.format(CONNECTIONS[name])
    assert _hidden_in(text)
    assert _hidden_in(Redactor({})(text)) == []
    assert _hidden_in(Redactor({})(json.dumps(json.dumps(text)))) == []
    assert without_secrets({"HARMLESS": text}) == {}


@pytest.mark.parametrize("name", CONNECTIONS)
def test_secret_of_a_connection_string_is_masked_on_its_own(name: str) -> None:
    redact = Redactor({"HARMLESS": CONNECTIONS[name]})
    assert {redact(f"({part})") for part in _values(CONNECTIONS[name])} == {f"({MASK})"}


def _values(connection: str) -> list[str]:
    values = [each.partition("=")[2] for each in connection.replace("&", ";").split(";")]
    return [value for value in values if _hidden_in(value)]


@pytest.mark.parametrize(
    "text",
    [
        "AccountKey=settings.storage_account_key",
        "AccountKey=<your key>",
        "SharedAccessKeyName=RootManageSharedAccessKey",
        "config=0123456789012345678901234567890123456789012345",
        "design=0123456789012345678901234567890123456789012345",
        "sig=short1",
        "def login(user, password=None): ...",
        "connect(host=host, password=password)",
        "a = 1; password = read()",
        "a=1; password=getpass.getpass()",
        "a=1;password=values[0]",
        "cd /x;PWD=/home",
        "a;pwd=$(pwd)",
        "a;pwd=${HOME}",
    ],
)
def test_code_that_names_such_keys_stays_readable(text: str) -> None:
    assert Redactor({})(text) == text
    assert without_secrets({"CODE": text}) == {"CODE": text}


@pytest.mark.parametrize("piece", ["sig=", "AccountKey=", ";pwd=", "; password=", "sig=a", ";pwd=a.", ";pwd=a(", "=;"])
def test_no_connection_string_keeps_the_search_busy(piece: str) -> None:
    assert Redactor({"HARMLESS": piece * 1_000})(piece * 30_000)
