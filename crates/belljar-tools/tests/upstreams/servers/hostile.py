"""An MCP server that does harm, with nothing but the standard library: one JSON message a line.

    hostile.py KIND

KIND may also be @FILE: what the file says when the server is started. Until its kind says otherwise it behaves: it answers `initialize`, lists the tool `work` and answers
calls of it with `done`. KIND is one of those below; what it does is in its name.
"""

import json
import os
import sys
import time

KIND = sys.argv[1]
if KIND.startswith("@"):
    KIND = open(KIND[1:]).read().strip()
TEXT = {"content": [{"type": "text", "text": "done"}]}
WORK = {"name": "work", "inputSchema": {"type": "object"}}


def write(data):
    data = memoryview(data)
    while data:
        data = data[os.write(1, data):]


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def forever(line, file=1):
    block = line * max(1, (1 << 16) // len(line))
    while True:
        os.write(file, block)


def hang():
    while True:
        time.sleep(3600)


def line(message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


NOTE = line({"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}})
LOGGED = line({"method": "notifications/message", "params": {"level": "info", "data": "x" * 200}})
CHANGED = line({"method": "notifications/tools/list_changed"})
PING = line({"id": 7, "method": "ping"})
SAMPLE = line({"id": 8, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}})


# Replies in place of the answer to `initialize`.
START = {
    "hangs_at_start": hang,
    "dies_at_start": lambda: os._exit(3),
    "floods_notifications_at_start": lambda: forever(NOTE),
    "floods_stderr_at_start": lambda: forever(b"noise " * 20 + b"\n", 2),
    "garbage_at_start": lambda: forever(b"\xff\x00\xfe{[[[\n"),
}


def nested(depth):
    return "[" * depth + "]" * depth


def listed(tools):
    return b'{"jsonrpc":"2.0","id":%d,"result":{"tools":' + tools + b"}}\n"


def tools_with(schema):
    return b'[{"name":"work","inputSchema":{"type":"object"}},{"name":"bad","inputSchema":' + schema + b"}]"


def endless_cursor(number):
    send({"id": number, "result": {"tools": [], "nextCursor": str(time.monotonic_ns())}})


def bad_names(number):
    names = ["work", "", "a\nb", "\u202eevil", "x" * 5000, "R\u0435ad_file", "run!", "work", None, 7]
    send({"id": number, "result": {"tools": [{**WORK, "name": name} for name in names]}})


# Answers to `tools/list`.
LIST = {
    "hangs_in_list": lambda number: hang(),
    "endless_cursor": endless_cursor,
    "deep_schema": lambda n: write(listed(tools_with(nested(200_000).encode())) % n),
    "wide_schema": lambda n: write(
        listed(tools_with(b'{"enum":[' + b"[]," * 10_000_000 + b"0]}")) % n),
    "huge_description": lambda n: send({"id": n, "result": {"tools": [
        WORK, {**WORK, "name": "big", "description": "d" * (34 << 20)}]}}),
    "bad_names": bad_names,
    "many_tools": lambda n: write(listed(b"[" + b",".join(
        b'{"name":"t%d","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}' % i
        for i in range(100_000)) + b"]") % n),
}


def huge_result(number):
    write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % number)
    block = b"x" * (1 << 20)
    for _ in range(4096):
        write(block)
    write(b'"}]}}\n')


def wide_result(number):
    write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":[' % number)
    for _ in range(60):
        write(b"[]," * 349_525)
    write(b"0]}}}\n")


def floods_requests_unread(number):
    forever(PING)


def floods_requests(number):
    while True:
        write(PING)
        sys.stdin.buffer.readline()


def twice(number):
    for _ in range(1000):
        send({"id": number, "result": TEXT})


# Answers to `tools/call`.
CALL = {
    "endless_line": lambda number: forever(b"x"),
    "floods_notifications": lambda number: forever(NOTE),
    "floods_log_messages": lambda number: forever(LOGGED),
    "floods_list_changed": lambda number: forever(CHANGED),
    "floods_requests_unread": floods_requests_unread,
    "floods_requests": floods_requests,
    "floods_sampling": lambda number: forever(SAMPLE),
    "floods_stderr": lambda number: forever(b"noise " * 20 + b"\n", 2),
    "garbage": lambda number: forever(b"\xff\x00\xfe{[[[\n"),
    "hangs_in_call": lambda number: hang(),
    "dies_in_call": lambda number: os._exit(9),
    "huge_result": huge_result,
    "wide_result": wide_result,
    "deep_result": lambda n: write(
        b'{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (n, nested(1_000_000).encode())),
    "huge_error": lambda n: write(
        b'{"jsonrpc":"2.0","id":%d,"error":[%s0]}\n' % (n, b"[]," * 20_000_000)),
    "wrong_ids": lambda number: forever(line({"id": number + 1000, "result": TEXT})),
    "answers_twice": twice,
    "closes_its_output": lambda number: (os.close(1), hang()),
}


def main():
    if KIND != "behaves" and KIND not in {**START, **LIST, **CALL}:
        sys.exit(f"no kind {KIND}")
    for text in sys.stdin.buffer:
        message = json.loads(text)
        method, number = message.get("method"), message.get("id")
        if method is None or number is None:
            continue
        if method == "initialize":
            START.get(KIND, lambda: None)()
            send({"id": number, "result": {
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": KIND, "version": "1"}}})
        elif method == "tools/list":
            plain = lambda number: send({"id": number, "result": {"tools": [WORK]}})
            LIST.get(KIND, plain)(number)
        elif method == "tools/call":
            CALL.get(KIND, lambda number: send({"id": number, "result": TEXT}))(number)
        elif method == "ping":
            send({"id": number, "result": {}})
        else:
            send({"id": number, "error": {"code": -32601, "message": f"no method {method}"}})


main()
