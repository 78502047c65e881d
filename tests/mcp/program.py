"""A program that is an MCP server of the old era, written by hand for the tests of our client."""

import json
import sys
from typing import Any

from handrail.mcp.config import ServerConfig
from tests.forked import unmeasured

GREETING = {"capabilities": {"tools": {}, "prompts": {}, "resources": {}}, "serverInfo": {"name": "x"}}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def program(then: str) -> ServerConfig:
    """A program that greets and lists a tool, and does something of its own when that is called."""
    answers = {"initialize": {"protocolVersion": "2025-06-18", **GREETING}, "tools/list": {"tools": [tool("t")]}}
    text = f"""
import json, sys
answers = json.loads({json.dumps(json.dumps(answers))})
def say(message): print(json.dumps(message), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "server/discover":
        say({{"id": message["id"], "error": {{"code": -32601, "message": "no"}}}})
    elif message.get("method") == "tools/call":
        {then}
    elif "id" in message and "method" in message:
        say({{"jsonrpc": "2.0", "id": message["id"], "result": answers.get(message["method"], {{}})}})
"""
    return ServerConfig("s", "stdio", command=sys.executable, args=("-c", text), env=unmeasured(), cwd="/")


OK = 'say({"id": message["id"], "result": {"content": [{"type": "text", "text": "ok"}]}})'
