"""The check ``code_graph``: what a folder of source code consists of, and which file depends on which."""
