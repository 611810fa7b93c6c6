"""What this extension registers: its commands."""

from codex_multi_role.extensions.replays.bundle_commands import bundle, verify
from codex_multi_role.extensions.replays.replay_test_command import replay_test

__all__ = ["bundle", "replay_test", "verify"]
