"""Entry point of ``python -m codex_multi_role``, identical to the console command."""

from __future__ import annotations

import sys

from codex_multi_role.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
