"""Tests for existing Python code: planned, written, measured by coverage and mutants, and cut to the fewest."""
