"""Whole applications on top of the checks and tools of any flow: each with its own checks, tools and rules.

Registered as entry points, like the plug-ins of other packages. Nothing else in this package imports them.
"""
