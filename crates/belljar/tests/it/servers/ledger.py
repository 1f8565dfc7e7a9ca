"""An MCP server whose effects outlive whoever asked for them, with nothing but the standard library.

    ledger.py stdio DIRECTORY     over standard streams, and ended with its host
    ledger.py http DIRECTORY      over HTTP, as a process of its own; its port is in DIRECTORY/port

What happens is a line of DIRECTORY/ledger: `asked effect x` when a call comes, `did effect x` when
it has its effect, `answered effect x` when it is about to be answered. A file named
`hold-before-x` keeps a call from its effect, `hold-after-x` from its answer, as long as it is there.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE, DIRECTORY = sys.argv[1:3]


def tool(name, field, kind, about):
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return {"name": name, "description": about, "inputSchema": schema}


TOOLS = [
    tool("effect", "key", "string", "Have an effect that must not happen twice"),
    tool("safe", "key", "string", "Have an effect that may happen twice"),
    tool("guarded", "key", "string", "Have an effect that a person is asked about"),
    tool("slow", "ms", "number", "Wait for some milliseconds"),
]


def note(line):
    """One write of one line: lines of several processes do not mix."""
    descriptor = os.open(os.path.join(DIRECTORY, "ledger"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, (line + "\n").encode())
    os.close(descriptor)


def held(gate):
    while os.path.exists(os.path.join(DIRECTORY, gate)):
        time.sleep(0.005)


def call(name, arguments):
    if name == "slow":
        time.sleep(arguments["ms"] / 1000)
        return {"slept": arguments["ms"]}
    key = arguments["key"]
    note(f"asked {name} {key}")
    held(f"hold-before-{key}")
    note(f"did {name} {key}")
    held(f"hold-after-{key}")
    note(f"answered {name} {key}")
    return {"done": key}


def result(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "ledger", "version": "1.0.0"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        value = call(params["name"], params.get("arguments", {}))
        return {"content": [{"type": "text", "text": json.dumps(value)}]}
    return None


def reply(request):
    found = result(request["method"], request.get("params", {}))
    unknown = {"error": {"code": -32601, "message": "method not found"}}
    answer = unknown if found is None else {"result": found}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer})


def is_request(message):
    return "id" in message and "method" in message


WRITING = threading.Lock()


def answer_line(request):
    line = reply(request) + "\n"
    with WRITING:
        sys.stdout.write(line)
        sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = reply(message).encode() if is_request(message) else b""
        try:
            self.send_response(200 if body else 202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass  # whoever asked is gone; what was done is done

    def do_GET(self):
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_DELETE = do_GET

    def log_message(self, *_):
        pass


if MODE == "stdio":
    for line in sys.stdin:
        message = json.loads(line)
        if is_request(message):
            threading.Thread(target=answer_line, args=(message,), daemon=True).start()
else:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # hosts are killed here; that is no news
    unfinished = os.path.join(DIRECTORY, "port.new")
    with open(unfinished, "w", encoding="ascii") as file:
        file.write(str(server.server_address[1]))
    os.rename(unfinished, os.path.join(DIRECTORY, "port"))
    server.serve_forever()
