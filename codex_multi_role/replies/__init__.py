"""From a model's text to a validated JSON object, or to the problem for the repair prompt."""

from codex_multi_role.reading.schema_validation import schema_problems
from codex_multi_role.replies.reply import EMPTY, Reply, read_reply, unusable, without

__all__ = ["EMPTY", "Reply", "read_reply", "schema_problems", "unusable", "without"]
