"""The public API: run a team, look at what runs left, and write a team in Python.

Its names are those of the package, which loads each on first use: a run of the command line needs none of it.
"""
