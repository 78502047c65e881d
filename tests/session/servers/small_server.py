"""
A small MCP server of before 2026-07-28: `small_server.py LOG`, with a tool that writes a file.

It writes the methods that it is asked for into the log, one a line, and a line of dashes when it starts.
"""

import json
import sys
from pathlib import Path

WRITE = {"name": "write", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}


def write(path: str) -> dict[str, object]:
    """What the tool answers."""
    try:
        Path(path).write_text("written")
    except OSError as error:
        return {"content": [{"type": "text", "text": f"refused: {error.strerror}"}], "isError": True}
    return {"content": [{"type": "text", "text": "written"}]}


log = Path(sys.argv[1])
with log.open("a") as file:
    file.write("---\n")
    for line in sys.stdin:
        message = json.loads(line)
        file.write(f"{message.get('method')}\n")
        file.flush()
        if "id" not in message:
            continue
        answer: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
        match message["method"]:
            case "initialize":
                answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            case "tools/list":
                answer["result"] = {"tools": [WRITE]}
            case "tools/call":
                answer["result"] = write(message["params"]["arguments"]["path"])
            case _:
                answer["error"] = {"code": -32601, "message": "unknown"}
        print(json.dumps(answer), flush=True)
