"""The templates of `presentation` as responses."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse

from codex_multi_role.presentation.rendering import template


def page(name: str, status_code: int = 200, **values: Any) -> HTMLResponse:  # noqa: ANN401 - what the template names
    """Render the template as a response."""
    return HTMLResponse(template(name).render(**values), status_code)
