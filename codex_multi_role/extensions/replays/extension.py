"""What this extension registers: its commands."""

from codex_multi_role.extensions.replays.bundle_commands import bundle, verify
from codex_multi_role.extensions.replays.replay_test_command import replay_test
from codex_multi_role.extensions.replays.rerun_command import rerun

__all__ = ["bundle", "replay_test", "rerun", "verify"]
