"""Entry point of ``python -m codex_multi_role``, identical to the console command."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder: a module in it, perhaps a role's, must not replace one of ours
    from codex_multi_role.cli.main import main

    sys.exit(main())
