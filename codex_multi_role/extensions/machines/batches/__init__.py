"""Many goals at once: the goal file, which goal starts when, who runs it, and what came of each."""
