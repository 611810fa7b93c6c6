"""Write the generated files of ``docs/``: ``python -m tests.docs``."""

from __future__ import annotations

from tests.docs.reference import generated

for path, content in generated().items():
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
