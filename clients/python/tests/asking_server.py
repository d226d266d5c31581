"""A server of tools that asks a person: newline-delimited JSON-RPC, MCP 2026-07-28.

Its tool `confirm` asks for a reason, and returns the person's answer.
"""

import json
import sys
from typing import Any

VERSION = "2026-07-28"
FORM = {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "server/discover":
        about = {"name": "asking", "version": "1"}
        return {"supportedVersions": [VERSION], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [{"name": "confirm", "inputSchema": {"type": "object"}}]}
    if method != "tools/call":
        return None
    given = params.get("inputResponses", {}).get("sure")
    if given is None:
        asked = {"mode": "form", "message": "Are you sure?", "requestedSchema": FORM}
        request = {"method": "elicitation/create", "params": asked}
        return {"resultType": "input_required", "requestState": "1", "inputRequests": {"sure": request}}
    text = f"{given['action']} {given.get('content', {}).get('why')}"
    return {"resultType": "complete", "content": [{"type": "text", "text": text}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    reply = {"result": result} if result is not None else {"error": {"code": -32601, "message": "method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"]} | reply), flush=True)
