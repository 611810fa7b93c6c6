"""Settings that make uv find packages where pip finds them. As a program: prints them as a shell's exports."""

from __future__ import annotations

import ast
import shlex
import subprocess
import sys


def uv_like_pip() -> dict[str, str]:
    """Environment variables for uv: uv reads neither pip's files nor its variables."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    found = {
        name.rpartition(".")[2]: str(ast.literal_eval(value))
        for name, _, value in (line.partition("=") for line in listed.splitlines())
    }
    settings = {
        "UV_DEFAULT_INDEX": found.get("index-url"),
        "UV_INDEX": found.get("extra-index-url"),
        "UV_FIND_LINKS": found.get("find-links", "").replace(" ", ","),
        "UV_CONSTRAINT": found.get("constraint"),
        "SSL_CERT_FILE": found.get("cert"),
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # as pip does
        "UV_PYTHON_DOWNLOADS": "never",
    }
    return {name: value for name, value in settings.items() if value}


if __name__ == "__main__":
    sys.stdout.writelines(f"export {name}={shlex.quote(value)}\n" for name, value in uv_like_pip().items())
