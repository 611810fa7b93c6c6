"""The environment for programs that a model may have written: nothing secret in it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH(?!OR)|DATABASE_URL", re.IGNORECASE)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` without the variables whose names say that they hold a secret."""
    return {name: value for name, value in environment.items() if not _SECRET_NAME.search(name)}
