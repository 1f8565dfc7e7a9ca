"""What code in a cell attempts in vain, each with a control that gets through.

Runs in a cell that may reach `web.example.com`, `*.deep.example.com`, `*.bad.example.com:8099` and, with rules
about requests, `api.example.com`. Lines in front may set `HAS_API = False` if the last one is not granted, and
`TURN`, the name that turns, which does so once. The value is a list of rows: what is attempted, what came of it, what came of
its control. `through` means that a server has answered. Paths with `forbidden` must not arrive anywhere.
"""

import re
import socket
import ssl
import struct
import urllib.error
import urllib.request

PROXY = ("127.0.0.1", 3128)
WEB, API, ADDRESS = "web.example.com", "api.example.com", "44.128.0.1"
HAS_API, TURN = globals().get("HAS_API", True), globals().get("TURN", "turning")
THROUGH = "through"
rows = []


def row(what, attempt, control):
    rows.append((what, tried(attempt), tried(control)))


def tried(action):
    try:
        return action()
    except (OSError, ssl.SSLError) as error:
        return f"{type(error).__name__}: {error}"


def dial():
    return socket.create_connection(PROXY, timeout=20)


def rest_of(connection):
    answer = b""
    try:
        while part := connection.recv(65536):
            answer += part
    except OSError:
        pass
    return answer


def verdict(answer, path):
    if f"hello from {path}".encode() in answer:
        return THROUGH
    return answer[:300].decode("latin-1").replace("\r\n", " | ") or "closed"


def talk(data, path="/forbidden"):
    with dial() as connection:
        connection.sendall(data if isinstance(data, bytes) else data.encode())
        return verdict(rest_of(connection), path)


def request(url, host=None, more="", method="GET", path="/forbidden", body=""):
    host = url.split("/")[2] if host is None else host
    head = f"{method} {url}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n"
    return talk((head + body).encode("utf-8", "surrogateescape"), path)


# How a host is named: by a request in absolute form, by CONNECT, by SOCKS5.


def by_request(host, port=80, path="/forbidden"):
    return request(f"http://{host}" + ("" if port == 80 else f":{port}"), path=path)


def opened(head, is_answered):
    connection = dial()
    connection.sendall(head)
    answer = b""
    while not is_answered(answer):
        part = connection.recv(4096)
        if not part:
            break
        answer += part
    return connection, answer


def tunnel(target, host=None):
    head = f"CONNECT {target} HTTP/1.1\r\nHost: {target if host is None else host}\r\n\r\n"
    connection, answer = opened(head.encode(), lambda answer: b"\r\n\r\n" in answer)
    if not answer.startswith(b"HTTP/1.1 200"):
        connection.close()
        raise PermissionError(answer.split(b"\r\n")[0].decode("latin-1") or "closed")
    return connection


def socks(address, port, command=1):
    greeting = b"\x05\x01\x00\x05" + bytes([command]) + b"\x00"
    data = greeting + address + struct.pack(">H", port)
    connection, answer = opened(data, lambda answer: len(answer) >= 12)
    if answer[3:4] != b"\x00":
        connection.close()
        raise PermissionError(f"SOCKS {answer.hex()}")
    return connection


def socks_name(name):
    name = name.encode() if isinstance(name, str) else name
    return b"\x03" + bytes([len(name)]) + name


def secured(connection, name, path="/forbidden", host=None):
    context = ssl.create_default_context()
    context.check_hostname = False
    with connection, context.wrap_socket(connection, server_hostname=name) as secure:
        head = f"GET {path} HTTP/1.1\r\nHost: {host or name or WEB}\r\nConnection: close\r\n\r\n"
        secure.sendall(head.encode())
        return verdict(rest_of(secure), path)


def by_connect(host, port=443, path="/forbidden"):
    return secured(tunnel(f"{host}:{port}"), shown(host), path)


def by_socks(host, port=443, path="/forbidden"):
    return secured(socks(socks_name(host.strip("[]")), port), shown(host), path)


def shown(host):
    """The server name of a client that is sincere, so that nothing but the host is refused."""
    name = host.rstrip(".").lower()
    return name if re.fullmatch(r"([a-z0-9-]{1,63}\.)+[a-z-]+", name) else WEB


def plain(port=443, first=f"GET /forbidden HTTP/1.1\r\nHost: {WEB}\r\n\r\n".encode()):
    with tunnel(f"{WEB}:{port}") as connection:
        connection.sendall(first)
        return verdict(rest_of(connection), "/forbidden")


def of_api(path, method="GET", more="", host=API):
    context = ssl.create_default_context()
    with tunnel(f"{API}:443") as plain, context.wrap_socket(plain, server_hostname=API) as secure:
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}"
        secure.sendall((head + ("" if "Connection:" in more else "Connection: close\r\n") + "\r\n").encode())
        return verdict(rest_of(secure), path)


WAYS = {"request": by_request, "CONNECT": by_connect, "SOCKS": by_socks}
HOSTS = {
    "another host": "other.example.com",
    "a name below": "www.web.example.com",
    "the name above a wildcard": "deep.example.com",
    "a name that ends alike": "evilweb.example.com",
    "a name that begins alike": "web.example.com.evil.net",
    "the address itself": ADDRESS,
    "octal": "054.0200.0.01",
    "hexadecimal parts": "0x2c.0x80.0x0.0x1",
    "hexadecimal": "0x2c800001",
    "an integer": "746586113",
    "two parts": "44.8388609",
    "an address and a dot": ADDRESS + ".",
    "mapped": "[::ffff:44.128.0.1]",
    "mapped in hexadecimal": "[::ffff:2c80:1]",
    "compatible": "[::44.128.0.1]",
    "NAT64": "[64:ff9b::44.128.0.1]",
    "local NAT64": "[64:ff9b:1::2c80:1]",
    "6to4": "[2002:2c80:1::1]",
    "Teredo": "[2001:0:2c80:1::d37f:fffe]",
    "loopback": "127.0.0.1",
    "loopback in IPv6": "[::1]",
    "every address": "0.0.0.0",
    "localhost": "localhost",
    "a metadata address": "169.254.169.254",
    "a metadata name": "metadata.google.internal",
    "two dots at the end": "web.example.com..",
    "a dot in front": ".web.example.com",
    "NUL": "web.example.com\0.evil.net",
    "a line end": "web.example.com\r\nX: y",
    "a user": "user@web.example.com",
    "a user that looks like the host": "web.example.com@other.example.com",
    "an encoded dot": "web%2eexample.com",
    "a look-alike": "wеb.example.com".encode("idna").decode(),
    "a look-alike in Unicode": "wеb.example.com",
    "a space": "web.example.com ",
    "an underscore": "web_example.com",
    "a name that is too long": ("a" * 60 + ".") * 4 + "example.com",
    "nothing": "",
}
for what, host in HOSTS.items():
    for way, reach in WAYS.items():
        row(f"{way}: {what}", lambda: reach(host), lambda: reach(WEB, path="/fine"))
for what, host in {"upper case": "WEB.Example.COM", "a dot at the end": WEB + "."}.items():
    for way, reach in WAYS.items():
        row(f"{way}: {what} of another host", lambda: reach(host.replace("WEB", "OTHER").replace("web", "other")),
            lambda: reach(host, path="/fine"))

# Ports.
for port in (81, 22, 8099, 443, 3128):
    row(f"request: port {port}", lambda: by_request(WEB, port), lambda: by_request(WEB, path="/fine"))
for target in (f"{WEB}:22", f"{WEB}:8099", WEB, f"{WEB}:", f"{WEB}:0", f"{WEB}:99999", f"{WEB}:443x", f"{WEB}:0443:80"):
    row(f"CONNECT {target}", lambda: secured(tunnel(target), WEB), lambda: by_connect(WEB, path="/fine"))
row("SOCKS: port 0", lambda: by_socks(WEB, 0), lambda: by_socks(WEB, path="/fine"))
row("CONNECT: plain HTTP through port 80", lambda: plain(80), lambda: by_connect(WEB, path="/fine"))

# Names that lead elsewhere. A server listens at each address of this machine.
BAD = [
    "loopback", "loopback-6", "private", "private-172", "private-192", "link-local", "metadata", "link-local-6",
    "unique-local", "carrier", "multicast", "broadcast", "zero", "zero-6", "documentation", "benchmark", "azure",
    "mapped", "mapped-loopback", "compatible", "nat64", "nat64-loopback", "nat64-local", "6to4", "teredo", "own",
    "mixed", "reserved",
]


def of_bad(name, path="/forbidden"):
    return by_request(f"{name}.bad.example.com", 8099, path)


for name in BAD:
    row(f"a name that leads to: {name}", lambda: of_bad(name), lambda: of_bad("good", "/fine"))
# The first answer is public, the next ones are not.
first = of_bad(TURN, "/fine")
row("a name that turns", lambda: of_bad(TURN), lambda: first)


def followed(target):
    try:
        with urllib.request.urlopen(f"http://{WEB}/redirect?{target}") as answer:
            return verdict(answer.read(), "/forbidden" if "forbidden" in target else "/fine")
    except urllib.error.HTTPError as error:
        return f"{error.code}"


for target in (
    "http://127.0.0.1:8099/forbidden", "http://[::1]:8099/forbidden", "http://169.254.169.254/forbidden",
    "http://loopback.bad.example.com:8099/forbidden", "http://other.example.com/forbidden", f"http://{WEB}:81/forbidden",
):
    row(f"redirected to {target}", lambda: followed(target), lambda: followed(f"http://{WEB}/fine"))

# The host in a request.
FINE = lambda: by_request(WEB, path="/fine")
AT = f"http://{WEB}"
for what, url, host, more in (
    ("another Host", AT, "other.example.com", ""),
    ("another port in Host", AT, f"{WEB}:81", ""),
    ("two Hosts", AT, WEB, "Host: other.example.com\r\n"),
    ("the same Host twice", AT, WEB, f"Host: {WEB}\r\n"),
    ("a user in Host", AT, f"x@{WEB}", ""),
    ("an empty Host", AT, "", ""),
    ("https in absolute form", f"https://{WEB}", None, ""),
    ("ftp", f"ftp://{WEB}", None, ""),
    ("the form of a server", "", WEB, ""),
    ("a port that is none", f"http://{WEB}:99999", WEB, ""),
    ("an empty port", f"http://{WEB}:", WEB, ""),
):
    row(f"request: {what}", lambda: request(url, host, more), FINE)
row("CONNECT: another Host", lambda: secured(tunnel(f"{WEB}:443", "other.example.com:443"), WEB),
    lambda: by_connect(WEB, path="/fine"))
for method in ("TRACE", "TRACK", "trace"):
    row(f"request: {method}", lambda: request(AT, method=method), FINE)
row("the preface of HTTP/2", lambda: talk("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), FINE)
row("no protocol at all", lambda: talk(b"\0\1\2\3\r\n\r\n"), FINE)
row("a second request to another host",
    lambda: talk(f"GET {AT}/fine HTTP/1.1\r\nHost: {WEB}\r\n\r\n"
                 "GET http://other.example.com/forbidden HTTP/1.1\r\nHost: other.example.com\r\n\r\n"),
    lambda: talk(f"GET {AT}/1 HTTP/1.1\r\nHost: {WEB}\r\n\r\n"
                 f"GET {AT}/fine HTTP/1.1\r\nHost: {WEB}\r\nConnection: close\r\n\r\n", "/fine"))

# Smuggled requests. Whatever becomes of the outer one, the inner one must not arrive.
INNER = f"GET /forbidden HTTP/1.1\r\nHost: {WEB}\r\n\r\n"
LENGTH, CHUNKED = len(INNER), f"{len(INNER):x}\r\n{INNER}\r\n0\r\n\r\n"
for what, rest in (
    ("two lengths", f"Content-Length: {LENGTH}\r\nContent-Length: 0\r\n\r\n{INNER}"),
    ("a list of lengths", f"Content-Length: 0, {LENGTH}\r\n\r\n{INNER}"),
    ("length and chunks", f"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n{CHUNKED}"),
    ("chunks and length", f"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n{CHUNKED}"),
    ("an odd encoding", f"Transfer-Encoding: xchunked\r\n\r\n{CHUNKED}"),
    ("two encodings", f"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n{CHUNKED}"),
    ("a space before the colon", f"Content-Length : {LENGTH}\r\n\r\n{INNER}"),
    ("a folded header", f"X: 1\r\n Content-Length: {LENGTH}\r\n\r\n{INNER}"),
    ("a bare carriage return", f"X: 1\rContent-Length: {LENGTH}\r\n\r\n{INNER}"),
    ("bare line feeds", f"X: 1\nContent-Length: 0\n\n{INNER}"),
    ("a signed length", f"Content-Length: +{LENGTH}\r\n\r\n{INNER}"),
    ("a NUL", f"X: \0\r\nContent-Length: {LENGTH}\r\n\r\n{INNER}"),
    ("a chunk extension", f"Transfer-Encoding: chunked\r\n\r\n1;\n{INNER}\r\nx\r\n0\r\n\r\n"),
    ("behind the last chunk", f"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{INNER}"),
):
    outer = f"POST {AT}/outer HTTP/1.1\r\nHost: {WEB}\r\nConnection: close\r\n{rest}"
    row(f"smuggled: {what}", lambda: talk(outer), FINE)


# The form of a tunnel.
def handshake(name, change=lambda hello: [hello], path="/forbidden"):
    """TLS whose first message is changed, and sent in pieces."""
    context = ssl.create_default_context()
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname=name)
    head = f"GET {path} HTTP/1.1\r\nHost: {WEB}\r\nConnection: close\r\n\r\n".encode()
    with tunnel(f"{WEB}:443") as connection:
        pending, is_first, answer = head, True, b""
        while True:
            try:
                if is_first or pending:
                    session.do_handshake()
                    session.write(pending)
                    pending = b""
                part = session.read(65536)
                if not part:
                    return verdict(answer, path)
                answer += part
            except ssl.SSLWantReadError:
                data = outgoing.read()
                for piece in change(data) if is_first else [data] if data else []:
                    connection.sendall(piece)
                is_first = False
                received = connection.recv(65536)
                if not received:
                    return verdict(answer, path)
                incoming.write(received)
            except ssl.SSLEOFError:
                return verdict(answer, path)
            except ssl.SSLError:
                # The server has seen another message than this client remembers.
                return "answered"


def with_extension(kind, content):
    """Appends an extension to the first message."""
    def change(hello):
        body = bytearray(hello)
        more = struct.pack(">HH", kind, len(content)) + content
        at = 9 + 2 + 32
        at += 1 + body[at]
        at += 2 + int.from_bytes(body[at:at + 2], "big")
        at += 1 + body[at]
        for start, size in ((3, 2), (6, 3), (at, 2)):
            length = int.from_bytes(body[start:start + size], "big") + len(more)
            body[start:start + size] = length.to_bytes(size, "big")
        return [bytes(body) + more]
    return change


def by_bytes(hello):
    return [hello[index:index + 1] for index in range(len(hello))]


def in_records(hello):
    message, kind = hello[5:], hello[:3]
    parts = [message[start:start + 40] for start in range(0, len(message), 40)]
    return [b"".join(kind + struct.pack(">H", len(part)) + part for part in parts)]


def renamed(name):
    return lambda hello: [hello.replace(WEB.encode(), name)]


SECURE = lambda: handshake(WEB, path="/fine")
for what, attempt, control in (
    ("another server name", lambda: handshake("other.example.com"), SECURE),
    ("the name of another granted host", lambda: handshake("a.deep.example.com"), SECURE),
    ("no server name", lambda: handshake(None), SECURE),
    ("an address as server name", lambda: handshake(None, with_extension(0, b"\0\r\0\0\n44.128.0.1")), SECURE),
    ("a NUL in the server name", lambda: handshake(WEB, renamed(b"web.example\0com")), SECURE),
    ("two server names", lambda: handshake(WEB, with_extension(0, b"\0\x09\0\0\x06a.evil")), SECURE),
    ("an encrypted client hello", lambda: handshake(WEB, with_extension(0xFE0D, b"\0" * 16)),
     lambda: handshake(WEB, with_extension(0x5A5A, b"\0" * 16), "/fine").replace("answered", THROUGH)),
    ("another name, byte by byte", lambda: handshake("other.example.com", by_bytes),
     lambda: handshake(WEB, by_bytes, "/fine")),
    ("another name, in many records", lambda: handshake("other.example.com", in_records),
     lambda: handshake(WEB, in_records, "/fine")),
    ("plain HTTP", plain, SECURE),
    ("SSH", lambda: plain(first=b"SSH-2.0-x\r\n"), SECURE),
    ("an alert", lambda: plain(first=b"\x15\x03\x01\0\x02\x02\x28"), SECURE),
    ("a hello of SSL 2", lambda: plain(first=b"\x80\x2e\x01\x03\x01" + b"\0" * 43), SECURE),
    ("an empty record", lambda: plain(first=b"\x16\x03\x01\0\0"), SECURE),
):
    row(f"tunnel: {what}", attempt, control)

# The commands of SOCKS.
IPV4 = socket.inet_aton(ADDRESS)
BY_NAME = lambda: by_socks(WEB, path="/fine")
for what, attempt in (
    ("an address", lambda: secured(socks(b"\x01" + IPV4, 443), WEB)),
    ("an address of IPv6", lambda: secured(socks(b"\x04" + bytes(10) + b"\xff\xff" + IPV4, 443), WEB)),
    ("BIND", lambda: secured(socks(socks_name(WEB), 443, 2), WEB)),
    ("UDP ASSOCIATE", lambda: secured(socks(socks_name(WEB), 443, 3), WEB)),
    ("an unknown kind of address", lambda: secured(socks(b"\x09", 443), WEB)),
    ("a name that is not UTF-8", lambda: secured(socks(socks_name(b"\xff\xfe"), 443), WEB)),
    ("SOCKS4", lambda: talk(b"\x04\x01" + struct.pack(">H", 80) + IPV4 + b"\0" + INNER.encode())),
    ("SOCKS4a", lambda: talk(b"\x04\x01" + struct.pack(">H", 80) + b"\0\0\0\1\0" + WEB.encode() + b"\0")),
    ("only a password", lambda: talk(b"\x05\x01\x02")),
    ("another version in the request", lambda: talk(b"\x05\x01\0\x04\x01\0" + socks_name(WEB) + b"\0\x50")),
):
    row(f"SOCKS: {what}", attempt, BY_NAME)

# Rules about requests: GET below /public, and anything but /public/admin.
PUBLIC = lambda: request(f"http://{API}", path="/public/fine")
for what, path, method, more in (
    ("another path", "/forbidden", "GET", ""),
    ("another method", "/public/forbidden", "DELETE", ""),
    ("a method in lower case", "/public/forbidden", "get", ""),
    ("dots", "/public/../forbidden", "GET", ""),
    ("encoded dots", "/public/%2e%2e/forbidden", "GET", ""),
    ("dots with a parameter", "/public/..;/forbidden", "GET", ""),
    ("two slashes", "/public//forbidden", "GET", ""),
    ("an encoded slash", "/public/%2fforbidden", "GET", ""),
    ("a backslash", "/public/..\\forbidden", "GET", ""),
    ("encoded twice", "/public/%252e%252e/forbidden", "GET", ""),
    ("overlong", "/public/%c0%ae%c0%ae/forbidden", "GET", ""),
    ("denied", "/public/admin/forbidden", "GET", ""),
    ("denied, encoded", "/public/%61dmin/forbidden", "GET", ""),
    ("denied, in upper case", "/public/ADMIN/forbidden", "GET", ""),
    ("denied, with a parameter", "/public/admin;x/forbidden", "GET", ""),
    ("WebSocket", "/public/forbidden", "GET", "Upgrade: websocket\r\nConnection: Upgrade\r\n"),
    ("HTTP/2", "/public/forbidden", "GET", "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: \r\n"),
    ("a method in a header", "/public/forbidden", "GET", "X-HTTP-Method-Override: DELETE\r\n"),
    ("a method in a header with underscores", "/public/forbidden", "GET", "X_HTTP_METHOD_OVERRIDE: DELETE\r\n"),
    ("a path in a header", "/public/forbidden", "GET", "X-Original-URL: /forbidden\r\n"),
) if HAS_API else ():
    row(f"rules: {what}", lambda: request(f"http://{API}", more=more, method=method, path=path), PUBLIC)
    row(f"rules, in TLS: {what}", lambda: of_api(path, method, more), lambda: of_api("/public/fine"))


# Sockets.
def made(*arguments):
    socket.socket(*arguments).close()
    return THROUGH


def on_socket(action):
    with socket.socket() as own:
        action(own)
    return THROUGH


def connected(address, family=socket.AF_INET):
    with socket.socket(family) as own:
        own.settimeout(5)
        own.connect(address)
    return THROUGH


INET, STREAM = socket.AF_INET, socket.SOCK_STREAM
for what, arguments in {
    "UDP": (INET, socket.SOCK_DGRAM),
    "TCP over IPv6": (socket.AF_INET6, STREAM),
    "raw ICMP": (INET, socket.SOCK_RAW, 1),
    "ping": (INET, socket.SOCK_DGRAM, 1),
    "packets": (socket.AF_PACKET, socket.SOCK_RAW),
    "netlink": (socket.AF_NETLINK, socket.SOCK_RAW),
    "AF_UNIX": (socket.AF_UNIX, STREAM),
    "AF_UNIX datagrams": (socket.AF_UNIX, socket.SOCK_DGRAM),
    "multipath TCP": (INET, STREAM, 262),
    "SCTP": (INET, STREAM, 132),
    "UDP-Lite": (INET, socket.SOCK_DGRAM, 136),
    "vsock": (socket.AF_VSOCK, STREAM),
    "the kernel's cryptography": (socket.AF_ALG, socket.SOCK_SEQPACKET),
    "XDP": (44, socket.SOCK_RAW),
    "Bluetooth": (31, STREAM),
}.items():
    row(f"socket: {what}", lambda: made(*arguments), lambda: made(INET, STREAM))
for what, action in {
    "bind": lambda own: own.bind(("127.0.0.1", 0)),
    "listen": lambda own: own.listen(),
    "a second listener on the proxy's port": lambda own: own.bind(PROXY),
    "MSG_FASTOPEN": lambda own: own.sendto(b"x", 0x20000000, PROXY),
    "TCP_FASTOPEN_CONNECT": lambda own: own.setsockopt(socket.IPPROTO_TCP, 30, 1),
    "a larger queue": lambda own: own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20),
    "another congestion control": lambda own: own.setsockopt(socket.IPPROTO_TCP, 13, b"reno"),
    "sendmsg": lambda own: (own.connect(PROXY), own.sendmsg([b"x"])),
    "an urgent byte": lambda own: (own.connect(PROXY), own.send(b"x", socket.MSG_OOB)),
}.items():
    row(f"socket: {what}", lambda: on_socket(action), lambda: on_socket(lambda own: own.connect(PROXY)))
for address in (("127.0.0.1", 8099), ("127.0.0.1", 80), ("127.0.0.1", 53), ("127.0.0.2", 3128), (ADDRESS, 80),
                (ADDRESS, 443), ("44.128.0.2", 8099), ("169.254.169.254", 80), ("0.0.0.0", 8099)):
    row(f"TCP to {address[0]}:{address[1]}", lambda: connected(address), lambda: connected(PROXY))
row("an abstract socket", lambda: connected("\0attempt", socket.AF_UNIX), lambda: connected(PROXY))
row("a pair of sockets", lambda: bool(socket.socketpair()) and THROUGH, lambda: connected(PROXY))
row("DNS", lambda: bool(socket.getaddrinfo(WEB, 80)) and THROUGH, FINE)
rows
