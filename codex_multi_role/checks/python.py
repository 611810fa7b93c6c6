"""The Python that a workspace's tests run with, and what they find around them."""

from __future__ import annotations

import sys
from pathlib import Path

from codex_multi_role.checks.base import CheckContext
from codex_multi_role.redaction import without_secrets
from codex_multi_role.workspace import Workspace

OWN_ENVIRONMENT = ".venv"
TESTS_FAILED, NO_TESTS_COLLECTED = 1, 5
"""Exit codes of pytest."""


def python_of(workspace: Workspace) -> str:
    """The workspace's own Python if pytest is installed there (nothing of the workspace is run to find out)."""
    return str(workspace.root / OWN_ENVIRONMENT / "bin" / "python") if has_own(workspace, "pytest") else sys.executable


def has_own(workspace: Workspace, package: str) -> bool:
    """Whether ``package`` is installed in the workspace's own environment."""
    own = workspace.root / OWN_ENVIRONMENT
    return any(own.glob(f"lib/python*/site-packages/{package}/__init__.py"))


def environment_of_tests(context: CheckContext, scratch: Path) -> dict[str, str]:
    """The run's environment without its secrets; temporary files go below ``scratch``."""
    temporary = scratch / "tmp"
    temporary.mkdir()
    return {**without_secrets(context.environment), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
