"""The settings of the web server."""

from __future__ import annotations

import click

from codex_multi_role.cli.settings import Setting
from codex_multi_role.cli.values import not_empty

HOST = Setting(["--host"], metavar="NAME", default="127.0.0.1", callback=not_empty, help="Where to listen.")
PORT = Setting(
    ["--port"],
    metavar="N",
    type=click.IntRange(0, 65535),
    default=8765,
    help="The port to listen on; 0 takes one that is free.",
)
PUBLIC_URL = Setting(
    ["--public-url"],
    metavar="URL",
    callback=not_empty,
    help="The address of a proxy in front, where visitors come by one; they then need the token.",
    show_default="none",
)
TOKEN = Setting(
    ["--token"],
    metavar="TEXT",
    help="What visitors must have; better in the environment than on the command line, which others can see.",
    show_default="none on this machine only, otherwise one that is made and printed",
)
