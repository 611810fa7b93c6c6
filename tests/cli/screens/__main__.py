import tempfile
from pathlib import Path

from tests.cli.screens import SCREENS

for screen in SCREENS:
    with tempfile.TemporaryDirectory() as folder:
        screen.path.write_text(screen.shown(screen.written(Path(folder))), encoding="utf-8")
