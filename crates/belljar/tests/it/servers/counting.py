"""A small MCP server over standard streams, with nothing but the standard library.

What it appends goes to the file that COUNT_FILE names, so that a test can count what really
happened, whoever was killed in between. Calls are answered by threads: a slow one keeps no other.
"""

import json
import os
import sys
import threading
import time


def schema(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT, NUMBER = {"type": "string"}, {"type": "number"}
TOOLS = [
    {
        "name": "add",
        "description": "Add two numbers.\nNothing else.",
        "inputSchema": schema(["a", "b"], a=NUMBER, b=NUMBER),
        "outputSchema": schema(["sum"], sum=NUMBER),
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "append",
        "description": "Append a line to the file",
        "inputSchema": schema(["text"], text=TEXT),
    },
    {
        "name": "slow",
        "description": "Wait for some milliseconds",
        "inputSchema": schema(["ms"], ms=NUMBER),
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "fail",
        "description": "Fail with a message",
        "inputSchema": schema(["message"], message=TEXT),
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "big",
        "description": "Return many rows",
        "inputSchema": schema(["rows"], rows={"type": "integer"}),
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "echo",
        "description": "Return what was given",
        "inputSchema": schema(["any"], any={}),
        "annotations": {"readOnlyHint": True},
    },
]


def note(line):
    """Writes a line where the test can see it, at once."""
    with open(os.environ["COUNT_FILE"], "a", encoding="utf-8") as file:
        file.write(line + "\n")


def call(name, arguments):
    if name == "add":
        total = arguments["a"] + arguments["b"]
        return {"content": [], "structuredContent": {"sum": total}}
    if name == "append":
        note(arguments["text"])
        return text({"appended": arguments["text"]})
    if name == "slow":
        note("slow begins")
        time.sleep(arguments["ms"] / 1000)
        return text({"slept": arguments["ms"]})
    if name == "fail":
        return {"content": [{"type": "text", "text": arguments["message"]}], "isError": True}
    if name == "big":
        return text([{"n": n, "name": f"row {n}"} for n in range(arguments["rows"])])
    if name == "echo":
        return text(arguments["any"])
    raise ValueError(f"no tool {name}")


def text(value):
    return {"content": [{"type": "text", "text": json.dumps(value)}]}


def answer(request):
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "counting", "version": "1.0.0"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(params["name"], params.get("arguments", {}))
    return None


WRITING = threading.Lock()


def serve(request):
    try:
        result = answer(request)
    except Exception as error:  # a test sees what went wrong
        reply = {"error": {"code": -32603, "message": repr(error)}}
    else:
        unknown = {"error": {"code": -32601, "message": "method not found"}}
        reply = unknown if result is None else {"result": result}
    with WRITING:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}) + "\n")
        sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        threading.Thread(target=serve, args=(message,), daemon=True).start()
