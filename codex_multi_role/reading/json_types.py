"""The shape of JSON data that no model describes more closely."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
"""A JSON object."""
