"""An MCP server on standard input and output, run as a file.

Its tools: ``echo`` only reads, ``change`` does not say so, ``ask`` puts a question to a person and returns the answer.
With the argument ``first`` it asks a person before it lists them.
"""

from __future__ import annotations

import json
import sys
from typing import Any

ECHO_SERVER: dict[str, Any] = {"command": sys.executable, "args": [__file__]}
WORD = {"type": "object", "properties": {"word": {"type": "string"}}}
READS = {"annotations": {"readOnlyHint": True}}


def send(**message: Any) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def ask_person() -> Any:
    """Put a question to a person through the client; the result, or the error instead."""
    send(id="question", method="elicitation/create", params={"message": "Sure?", "requestedSchema": WORD})
    while (answer := json.loads(sys.stdin.readline())).get("id") != "question":
        pass
    return answer.get("result", answer.get("error"))


def call_tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a tool call."""
    text = json.dumps(ask_person()) if name == "ask" else f"heard {arguments['word']}"
    return {"content": [{"type": "text", "text": text}]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a request ``method``."""
    if method == "initialize":
        about = {"name": "echo", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        if "first" in sys.argv:
            ask_person()
        tools = {"echo": READS, "change": {}, "ask": READS}
        return {
            "tools": [{"name": name, "description": "e", "inputSchema": WORD, **more} for name, more in tools.items()]
        }
    return call_tool(params["name"], params["arguments"]) if method == "tools/call" else {}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            send(id=asked["id"], result=answer(asked["method"], asked.get("params", {})))
