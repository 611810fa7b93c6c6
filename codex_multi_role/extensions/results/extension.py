"""What this extension registers: its commands. Its part of the report page is `changed_lines.lines`."""

from codex_multi_role.extensions.results.bisect_command import bisect
from codex_multi_role.extensions.results.commands import apply, blame, diff, export
from codex_multi_role.extensions.results.pull_request_command import pr

__all__ = ["apply", "bisect", "blame", "diff", "export", "pr"]
