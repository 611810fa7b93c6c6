"""What speaks to other systems about a run: CI reports, pull requests."""
