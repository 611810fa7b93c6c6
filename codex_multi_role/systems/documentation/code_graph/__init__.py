"""The check ``code_graph``: the contents of a folder of source code, and which file depends on which."""
