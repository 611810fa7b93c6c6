"""Research: questions and topics, what was read on them, what is known then, and the report of it."""
