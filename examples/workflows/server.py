"""The MCP server of the examples: adds numbers, appends lines to count.txt, and fails on request.

It speaks over standard streams and needs only the standard library.
"""

import json
import os
import sys

NUMBER, TEXT = {"type": "number"}, {"type": "string"}


def schema(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


TOOLS = [
    {
        "name": "add",
        "description": "Add two numbers",
        "inputSchema": schema(a=NUMBER, b=NUMBER),
        "outputSchema": schema(sum=NUMBER),
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "append",
        "description": "Append a line to the file",
        "inputSchema": schema(text=TEXT),
    },
    {
        "name": "fail",
        "description": "Fail with a message",
        "inputSchema": schema(message=TEXT),
        "annotations": {"readOnlyHint": True},
    },
]


def call(name, arguments):
    if name == "add":
        return {"content": [], "structuredContent": {"sum": arguments["a"] + arguments["b"]}}
    if name == "append":
        with open(os.environ["COUNT_FILE"], "a", encoding="utf-8") as file:
            file.write(arguments["text"] + "\n")
        text = json.dumps({"appended": arguments["text"]})
        return {"content": [{"type": "text", "text": text}]}
    return {"content": [{"type": "text", "text": arguments["message"]}], "isError": True}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "count", "version": "1.0.0"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(params["name"], params.get("arguments", {}))
    return {} if method == "ping" else None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    result = answer(request["method"], request.get("params", {}))
    unknown = {"error": {"code": -32601, "message": "method not found"}}
    reply = unknown if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}), flush=True)
