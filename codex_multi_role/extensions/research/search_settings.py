"""The settings in ``search.yaml``: where to search."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator

from codex_multi_role.errors import how_to_add

SEARCH_FILE = "search.yaml"
LONGEST_SECONDS = 120.0
FILES, HTTP, CODEX_WEB = "files", "http", "codex-web"
_OF_KIND = {FILES: {"folder"}, HTTP: {"endpoint", "body", "headers", "secrets", "results", "title", "url", "snippet",
                                      "date"}, CODEX_WEB: set[str]()}  # fmt: skip
_EXPRESSIONS = ("results", "title", "url", "snippet", "date")
_ENDPOINT = re.compile(r"https?://[^/?#\s{}]+[^\s]*")

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
Secret = Annotated[str, StringConstraints(pattern=r"^(Bearer )?[A-Za-z_][A-Za-z0-9_]*$")]
Seconds = Annotated[float, Field(gt=0, le=LONGEST_SECONDS, allow_inf_nan=False)]


class SearchProvider(BaseModel):
    """One place to search.

    ``files``: the documents of ``folder``, by default of the check's own folder. ``http``: a GET of ``endpoint``, or a
    POST of ``body``, with ``{query}`` and ``{count}`` filled in; ``secrets`` sets headers from environment variables,
    such as ``Authorization: Bearer SEARCH_API_KEY``; ``results`` (JMESPath) selects the list in the JSON answer, the
    other expressions select the fields of each entry. ``codex-web``: nothing is searched here; the flow asks a role to
    do it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    kind: Literal["files", "http", "codex-web"]
    enabled: bool = True
    timeout_seconds: Seconds = 20.0
    folder: str = ""
    endpoint: str = ""
    body: JsonValue = None
    headers: dict[str, str] = Field(default_factory=dict)
    secrets: dict[str, Secret] = Field(default_factory=dict)
    results: str = "results"
    title: str = "title"
    url: str = "url"
    snippet: str = "snippet"
    date: str = "date"

    @property
    def variables(self) -> list[str]:
        """The environment variables that `secrets` names."""
        return [secret.rpartition(" ")[2] for secret in self.secrets.values()]

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        stray = self.model_fields_set & set().union(*_OF_KIND.values()) - _OF_KIND[self.kind]
        if stray:
            raise ValueError(f"{min(stray)} is not an option that {self.kind} accepts")
        if self.kind == HTTP:
            self._check_request()
        return self

    def _check_request(self) -> None:
        if not _ENDPOINT.fullmatch(self.endpoint):
            raise ValueError("endpoint must be an address that starts with http:// or https:// and a host")
        if "{query}" not in f"{self.endpoint}{self.body}":
            raise ValueError("neither endpoint nor body has a place for {query}")
        if self.enabled:
            self._check_expressions()

    def _check_expressions(self) -> None:
        try:
            import jmespath
        except ImportError as error:
            raise ValueError(f"http needs jmespath: {how_to_add('research')}") from error
        for key in _EXPRESSIONS:
            try:
                jmespath.compile(getattr(self, key))
            except jmespath.exceptions.JMESPathError as error:
                raise ValueError(f"{key} is not a JMESPath expression: {' '.join(str(error).split())}") from error


class SearchFile(BaseModel):
    """The content of ``search.yaml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1]
    providers: Annotated[tuple[SearchProvider, ...], Field(min_length=1, max_length=16)]

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [provider.name for provider in self.providers]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f'two providers are called "{twice[0]}"')
        return self

    @property
    def enabled(self) -> tuple[SearchProvider, ...]:
        return tuple(provider for provider in self.providers if provider.enabled)
