"""Detects secrets by variable name, by value and by shape, and keeps them out of stored data.

The shapes are those that their issuers document. Each has a distinct beginning, which no hash, UUID or image has. No
pattern looks far ahead, and a text is read once, because models wrote what is searched.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import TypeVar, cast
from urllib.parse import unquote

from codex_multi_role.host.spelling import with_texts

Value = TypeVar("Value")

SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|PASSCODE|PGPASS|CREDENTIAL|AUTH(?!OR(?!I[ZS]))|"  # not GIT_AUTHOR_NAME
    r"DATABASE_URL|CONNECTION_?STRING|(?<!BY)(?<!COM)PASS(?![A-Z0-9])|(?<!^)(?<!OLD)PWD|"  # nor PWD and OLDPWD
    r"(?<![A-Z0-9])(?:DSN|PAT|PW|BINDPW|[TH]?OTP(?!_VERSION))(?![A-Z0-9])|"
    r"(?<!XDG_)(?<!TERM_)(?<!SECURITY)SESS(?:ION)?_?ID(?![A-Z0-9])|(?P<headers>OTLP_\w*HEADERS)|"
    r"(?P<cookies>COOKIES?)(?!CUTTER|_(?:NAME|DOMAIN|PATH|FILE|JAR|SECURE|HTTPONLY|SAMESITE|(?:MAX_)?AGE)(?![A-Z0-9]))",
    re.IGNORECASE,
)
# In JSON, the letter of an escaped line break directly precedes the next line.
BEGINNING = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4}))"
# A prefix that ``-`` or ``_`` joins to it is masked as well. The three parts are searched once per word, at its start:
# otherwise each ``eyJ`` of a long word would be scanned up to the word's end.
JSON_WEB_TOKEN = (
    r"(?<![_-])(?=[A-Za-z0-9_-]{13,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10})"
    r"(?:[A-Za-z0-9_-]*?[_-])?eyJ[A-Za-z0-9_-]{10,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+"
)
_BREAKS = r"(?:(?:\\+r|\r)?(?:\\+n|\n))+"  # line breaks: plain, in JSON, or in JSON in JSON
PRIVATE_KEY = (
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:{_BREAKS}[A-Za-z-]+: [^\r\n\\]+)*"
    rf"(?:{_BREAKS}[A-Za-z0-9+/]{{16,}}={{0,2}})+(?:{_BREAKS}[A-Za-z0-9+/=]{{1,15}}(?![A-Za-z0-9+/=]))?"
    rf"(?:{_BREAKS}-----END [A-Z0-9 ]+-----)?"
)
AZURE_KEY = r"(?ai:AccountKey|(?:Shared)?AccessKey|sig)=(?=[A-Za-z+/%]{0,60}[0-9])[A-Za-z0-9+/%]{40,}={0,2}"
CONNECTION_PASSWORD = r"""(?:(?<=;)|(?<=; ))(?ai:Pwd|Password)=(?![/$({]|[\w.]{1,256}[([])[^;\s"'\\<>]{1,256}"""
SHAPES: Mapping[str, tuple[str, ...]] = {
    r"sk-(?=[a-z_-]{0,40}[A-Z0-9])[A-Za-z0-9_-]{16,}": ("sk-",),  # OpenAI, Anthropic; not scikit-learn's CSS classes
    r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}": ("k_live_", "k_test_", "whsec_"),  # Stripe
    r"gh[pousr]_[A-Za-z0-9]{20,}": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),  # GitHub
    r"github_pat_[A-Za-z0-9_]{22,}": ("github_pat_",),
    r"gl[a-z]{2,6}-[A-Za-z0-9_-]{20,}": ("gl",),  # GitLab: glpat, gldt, glrt, glcbt, glptt, glft, glimt, glagent …
    r"(?:AKIA|ASIA)[0-9A-Z]{16}": ("akia", "asia"),  # Amazon
    r"AIza[A-Za-z0-9_-]{35}": ("aiza",),  # Google
    r"ya29\.[A-Za-z0-9_-]{20,}": ("ya29.",),
    r"GOCSPX-[A-Za-z0-9_-]{28}": ("gocspx-",),
    r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}": ("xox",),  # Slack
    r"xapp-[0-9]-[A-Za-z0-9-]{10,}": ("xapp-",),
    r"hooks\.slack\.com/services/[A-Za-z0-9_/]{20,}": ("hooks.slack.com/",),
    r"hf_[A-Za-z0-9]{30,}": ("hf_",),  # Hugging Face
    r"npm_[A-Za-z0-9]{36}": ("npm_",),
    r"pypi-AgE[A-Za-z0-9_-]{50,}": ("pypi-age",),
    JSON_WEB_TOKEN: (".eyj",),
    r"(?ai:Bearer|Basic) {1,8}(?=[A-Za-z._~+/-]{0,40}[0-9])[A-Za-z0-9._~+/-]{16,}=*": ("bearer ", "basic "),  # HTTP
    PRIVATE_KEY: ("private key",),
    AZURE_KEY: ("accountkey=", "accesskey=", "sig="),
    CONNECTION_PASSWORD: ("pwd=", "password="),
}
"""Each shape with what it cannot do without, in lower case: only a text with one of these has to be searched."""
_WORDS = (shape for shape in SHAPES if shape != PRIVATE_KEY)
SECRET_SHAPE = re.compile(rf"{BEGINNING}(?:{'|'.join(_WORDS)})(?![A-Za-z0-9])|{PRIVATE_KEY}")
_NEEDED = tuple(part for parts in SHAPES.values() for part in parts)
LOGIN = re.compile(r"""(?<=[A-Za-z0-9]://)([^\s/:"'\\<>]{0,256}:)([^\s/"'\\<>]{1,512})(?=@)""")
"""Group 1 is the user with a colon, group 2 the password, in ``scheme://user:password@host``."""
SHORTEST_SECRET = 8
MASK = "[redacted]"


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` without secrets, by name and by shape: for programs that a model may have written."""
    kept = (name for name, value in environment.items() if not SECRET_NAME.search(name) and not _has_shape(value))
    return {name: environment[name] for name in kept}


def _has_shape(value: str) -> bool:
    return SECRET_SHAPE.search(value) is not None or LOGIN.search(value) is not None


def _secrets(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if found := SECRET_NAME.search(name):
            yield value
            if found["headers"] or found["cookies"]:
                yield from _sent_in_headers(value, ";" if found["cookies"] else ",")
        if login := LOGIN.search(value):
            yield from (value, login[2], unquote(login[2]))
        yield from (part[0].partition("=")[2] for part in re.finditer(f"{AZURE_KEY}|{CONNECTION_PASSWORD}", value))


def _sent_in_headers(value: str, separator: str) -> Iterator[str]:
    """The values of ``a=Basic%20x,b=y``, as written and as sent.

    https://opentelemetry.io/docs/specs/otel/protocol/exporter/#specifying-headers-via-environment-variables
    """
    for header in value.split(separator):
        sent = header.partition("=")[2].strip()
        yield from (sent, *unquote(sent).split())


def _may_have_shape(text: str) -> bool:
    """A search for fixed texts takes a tenth of the time, and a run searches all that its models write."""
    folded = text.casefold()
    return any(map(folded.__contains__, _NEEDED))


class Redactor:
    """Masks secrets in text that will be stored, plain or inside JSON.

    A short value, or one that is the path of an existing file or folder, is not a secret whatever its name.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        named = (value for value in _secrets(environment) if len(value) >= SHORTEST_SECRET)
        values = {value for value in named if not os.path.exists(value)}  # noqa: PTH110
        values |= {json.dumps(value, ensure_ascii=False)[1:-1] for value in values}
        longest_first = sorted(values, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if values else None

    def __call__(self, text: str) -> str:
        """``text`` with every known secret masked."""
        if self._values is not None:
            text = self._values.sub(MASK, text)
        if _may_have_shape(text):
            text = SECRET_SHAPE.sub(MASK, text)
        return LOGIN.sub(rf"\1{MASK}", text) if "://" in text else text

    def within(self, value: Value) -> Value:
        """``value`` (of any JSON type) with every string in it masked, except keys."""
        return cast(Value, with_texts(value, self))
