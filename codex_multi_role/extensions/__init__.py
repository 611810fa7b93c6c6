"""Features beside the core: a folder has everything of one, registered by the entry points that any plug-in uses.

Nothing in the core imports them.
"""
