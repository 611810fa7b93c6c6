"""One run from its definitions to its end: loading, starting, resuming, forking, replaying, stopping.

Not called ``run``: a module of that name would hide the public function `codex_multi_role.run`.
"""
