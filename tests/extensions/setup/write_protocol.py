"""Write down the protocol of the installed binary as the one this package is tested with.

    python -m tests.extensions.setup.write_protocol

The messages are those the file names already; a new one is added there first, with any text for its digest.
"""

from __future__ import annotations

import json

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.extensions.setup.protocol import TESTED, printed_protocol, protocol_as_tested

if __name__ == "__main__":
    spoken = {file: list(messages) for file, messages in protocol_as_tested().items()}
    TESTED.write_text(json.dumps(printed_protocol(find_codex(None, {}), spoken), indent=2) + "\n")
