"""An MCP server on standard input and output whose tools, and words about them, are those of files."""

import json
import sys
from pathlib import Path

TOOLS = Path(sys.argv[1])


def result(method: str, params: dict) -> object:  # type: ignore[type-arg]
    match method:
        case "initialize":
            info = {"name": "small", "version": "1"}
            welcome = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            said = TOOLS.with_name("instructions.txt")
            return {**welcome, "instructions": said.read_text()} if said.exists() else welcome
        case "tools/list":
            return {"tools": json.loads(TOOLS.read_text())}
        case "tools/call":
            words = json.dumps([params["name"], params.get("arguments")])
            return {"content": [{"type": "text", "text": words}], "isError": params["name"] == "fail"}
        case _:
            return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        found = result(message["method"], message.get("params") or {})
        answer = {"result": found} if found is not None else {"error": {"code": -32601, "message": "unknown"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
