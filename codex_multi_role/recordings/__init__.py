"""Recording what the models of a run answered, replaying it, and telling whether a replay came to the same."""
