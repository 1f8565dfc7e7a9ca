"""An MCP server for the tests, with nothing but the standard library: one JSON message a line.

    fixture.py [--modern] [--dies-of-discovery] [--daemon MARK] [--slow-start SECONDS] [--fails]

By default it speaks the revisions that begin with `initialize`; `--modern` makes it speak the one
that does not. Each call runs in a thread of its own.
"""

import json
import os
import subprocess
import sys
import threading
import time

MODERN = "--modern" in sys.argv
VERSION = "2026-07-28" if MODERN else "2025-11-25"
META = "io.modelcontextprotocol/"

out_lock = threading.Lock()
state = {"running": 0, "most": 0, "calls": 0, "cancelled": [], "asked": set(), "extra": 0, "replies": {}}
state_lock = threading.Lock()
subscription = None


def option(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def send(message):
    line = json.dumps({"jsonrpc": "2.0", **message})
    with out_lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def tools():
    names = ["echo", "sleep", "most", "add_tool", "die", "describe", "cancelled", "ask", "mangle",
             "fail", "refuse", "calls", "want_input", "flood"]
    with state_lock:
        names += [f"extra_{n}" for n in range(state["extra"])]
    return [{"name": name, "description": f"does {name}", "inputSchema": {"type": "object"}}
            for name in names]


def text(value):
    return {"resultType": "complete", "content": [{"type": "text", "text": value}]}


def change():
    note = {"method": "notifications/tools/list_changed"}
    if MODERN:
        if subscription is None:
            return
        note["params"] = {"_meta": {META + "subscriptionId": subscription}}
    send(note)


def call(request, name, arguments):
    if name == "echo":
        return {"content": [], "structuredContent": arguments}
    if name == "sleep":
        with state_lock:
            state["running"] += 1
            state["most"] = max(state["most"], state["running"])
        time.sleep(arguments["seconds"])
        with state_lock:
            state["running"] -= 1
        return text("slept")
    if name == "most":
        return text(str(state["most"]))
    if name == "calls":
        return text(str(state["calls"]))
    if name == "add_tool":
        with state_lock:
            state["extra"] += 1
        change()
        return text("added")
    if name == "die":
        os._exit(7)
    if name == "describe":
        return text(json.dumps({"environment": dict(os.environ), "directory": os.getcwd(),
                                "pid": os.getpid()}))
    if name == "cancelled":
        return text(json.dumps(state["cancelled"]))
    if name == "ask":
        send({"id": "question", "method": "elicitation/create",
              "params": {"message": "may I?", "requestedSchema": {"type": "object", "properties": {}}}})
        while "question" not in state["replies"]:
            time.sleep(0.01)
        return text(json.dumps(state["replies"].pop("question")))
    if name == "mangle":
        return {"content": "this is not a list"}
    if name == "fail":
        return {"content": [{"type": "text", "text": "it did not work"}], "isError": True}
    if name == "want_input":
        return {"resultType": "input_required", "inputRequests": {}}
    if name == "flood":
        for n in range(arguments["lines"]):
            print(f"line {n} " + "x" * 5000, file=sys.stderr)
        return text("flooded")
    return None


def answer(request):
    name, arguments = request["params"]["name"], request["params"].get("arguments") or {}
    with state_lock:
        state["calls"] += 1
    result = call(request, name, arguments)
    if result is None:
        send({"id": request["id"], "error": {"code": -32602, "message": f"no tool {name}"}})
    else:
        send({"id": request["id"], "result": result})


def page(request):
    """The list of tools, five at a time."""
    every = tools()
    start = int((request.get("params") or {}).get("cursor") or 0)
    result = {"resultType": "complete", "tools": every[start:start + 5]}
    if start + 5 < len(every):
        result["nextCursor"] = str(start + 5)
    return result


def handle(message):
    global subscription
    method, number = message.get("method"), message.get("id")
    capabilities = {"tools": {"listChanged": True}}
    info = {"name": "fixture", "version": "1.2.3"}
    if method is None:
        state["replies"][number] = message.get("result", message.get("error"))
    elif method == "server/discover" and "--dies-of-discovery" in sys.argv:
        os._exit(3)
    elif method == "server/discover" and MODERN:
        send({"id": number, "result": {
            "resultType": "complete", "supportedVersions": [VERSION], "capabilities": capabilities,
            "ttlMs": 0, "cacheScope": "private", "_meta": {META + "serverInfo": info}}})
    elif method == "initialize" and not MODERN:
        send({"id": number, "result": {
            "protocolVersion": VERSION, "capabilities": capabilities, "serverInfo": info}})
    elif method == "tools/list":
        send({"id": number, "result": page(message)})
    elif method == "tools/call":
        state["asked"].add(number)
        threading.Thread(target=answer, args=(message,), daemon=True).start()
    elif method == "subscriptions/listen" and MODERN:
        subscription = number
        send({"method": "notifications/subscriptions/acknowledged", "params": {
            "notifications": {"toolsListChanged": True}, "_meta": {META + "subscriptionId": number}}})
    elif method == "notifications/cancelled":
        # Of calls only: a client may ask by two requests whether anybody is there, and need one answer.
        if message["params"]["requestId"] in state["asked"]:
            state["cancelled"].append(message["params"]["requestId"])
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": f"no method {method}"}})


def main():
    if "--fails" in sys.argv:
        print("KEY is not set", file=sys.stderr)
        sys.exit(1)
    time.sleep(float(option("--slow-start") or 0))
    mark = option("--daemon")
    if mark:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)", mark],
                         start_new_session=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print("this line is no message", flush=True)
    for line in sys.stdin:
        handle(json.loads(line))


main()
