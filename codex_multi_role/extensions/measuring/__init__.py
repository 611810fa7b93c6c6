"""Measured tests: what they reach, and whether they say the same twice, each time in a private copy."""
