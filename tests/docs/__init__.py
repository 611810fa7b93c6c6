"""The documentation: its generated pages, its commands, its examples and its site.

``python -m tests.docs`` writes the generated pages again.
"""
