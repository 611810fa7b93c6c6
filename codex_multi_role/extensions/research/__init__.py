"""Research: questions and topics, what was read about them, the facts known then, and the report."""
