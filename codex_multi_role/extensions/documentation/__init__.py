"""Documents about source code: planned, written as Markdown pages, and measured against the code."""
