"""Programs under test, and candidates of tests for them as two developers wrote them: texts, not collected here."""
