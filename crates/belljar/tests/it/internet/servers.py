"""The servers of the test internet: names, HTTP, HTTPS, git, an index for pip, a registry for npm.

Usage: servers.py DIRECTORY ADDRESS. Prints `started`, waits for a line, listens, prints `ready`, and ends
when its input does. Every request is a line of DIRECTORY/requests, every name that was asked for one of
DIRECTORY/names.
"""

import collections
import json
import os
import pathlib
import re
import socketserver
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import dnslib
import dnslib.server
import trustme

import packages

WEB, GIT, INDEX, REGISTRY = ("web.example.com", "git.example.com", "index.example.com", "registry.example.com")
API, OTHER, DEEP, GOOD = "api.example.com", "other.example.com", "a.deep.example.com", "good.bad.example.com"
NAMES = {WEB, GIT, INDEX, REGISTRY, API, OTHER, DEEP, GOOD}
# Beside 80 and 443, for plain HTTP.
MORE_PORT = 8099
# It leads to a private address.
INNER = "inner.example.com"
# The search domain of the client.
SEARCH = ".search.example.net"
# Each leads to the servers once, and elsewhere from then on.
TURNING = re.compile(r"turning(-[a-z]+)?\.bad\.example\.com")
# Names that lead elsewhere, beneath `bad.example.com`. `+` stands for the servers' address.
BAD = {
    "loopback": "127.0.0.1",
    "loopback-6": "::1",
    "private": "10.0.0.1",
    "private-172": "172.16.0.1",
    "private-192": "192.168.0.1",
    "link-local": "169.254.0.1",
    "link-local-6": "fe80::1",
    "metadata": "169.254.169.254",
    "azure": "168.63.129.16",
    "unique-local": "fd00:ec2::254",
    "carrier": "100.64.0.1",
    "multicast": "224.0.0.1",
    "broadcast": "255.255.255.255",
    "zero": "0.0.0.0",
    "zero-6": "::",
    "documentation": "192.0.2.1",
    "benchmark": "198.18.0.1",
    "reserved": "240.0.0.1",
    "mapped": "::ffff:2c80:1",
    "mapped-loopback": "::ffff:7f00:1",
    "compatible": "::2c80:1",
    "nat64": "64:ff9b::2c80:1",
    "nat64-loopback": "64:ff9b::7f00:1",
    "nat64-local": "64:ff9b:1::2c80:1",
    "6to4": "2002:2c80:1::1",
    "teredo": "2001:0:2c80:1::d37f:fffe",
    "own": "44.128.0.2",
    "mixed": "+ 127.0.0.1",
}


def line(directory, name, text):
    with (directory / name).open("a") as log:
        log.write(f"{text}\n")


class Names(dnslib.server.BaseResolver):
    def __init__(self, directory, address):
        self.directory, self.address, self.turns = directory, address, collections.Counter()

    def addresses(self, name, kind):
        first, _, parent = name.partition(".")
        if name in NAMES or name.endswith(SEARCH):
            return [self.address]
        if name == INNER:
            return [BAD["private"]]
        if TURNING.fullmatch(name):
            # Public once, and this machine from then on.
            self.turns[name] += kind == dnslib.QTYPE.A
            return [self.address if self.turns[name] <= 1 else "127.0.0.1"]
        if parent == "bad.example.com" and first in BAD:
            return BAD[first].replace("+", self.address).split()
        return None

    def resolve(self, request, handler):
        name = str(request.q.qname).rstrip(".").lower()
        line(self.directory, "names", name)
        reply = request.reply()
        addresses = self.addresses(name, request.q.qtype)
        if addresses is None:
            reply.header.rcode = dnslib.RCODE.NXDOMAIN
        for address in addresses or []:
            kind = dnslib.AAAA if ":" in address else dnslib.A
            if request.q.qtype == getattr(dnslib.QTYPE, kind.__name__):
                record = dnslib.RR(request.q.qname, request.q.qtype, rdata=kind(address), ttl=0)
                reply.add_answer(record)
        return reply


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    directory: pathlib.Path
    sites: dict

    def log_message(self, *_):
        pass

    def respond(self, body, status=200, kind="text/plain", headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            whole = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def serve(self):
        host = self.headers.get("Host", "").split(":")[0]
        scheme = "https" if isinstance(self.connection, ssl.SSLSocket) else "http"
        authorization = self.headers.get("Authorization", "-")
        line(self.directory, "requests", f"{self.command} {scheme}://{host}{self.path} {authorization}")
        webs = dict.fromkeys((WEB, API, OTHER, DEEP, GOOD), self.web)
        file = self.web if TURNING.fullmatch(host) else self.file
        site = {GIT: self.git, **webs}.get(host, file)
        site(host)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = serve

    def web(self, host):
        path = self.path.partition("?")[0]
        if path == "/redirect":
            # /redirect?LOCATION, or /redirect?STATUS,LOCATION
            query = self.path.partition("?")[2]
            status, location = query.split(",", 1) if re.match("[0-9]{3},", query) else ("302", query)
            self.body()
            self.respond(b"", int(status), headers=[("Location", location)])
        elif path == "/chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (b"one ", b"two ", b"three"):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        elif path == "/old":
            # The end of the connection is the end of the body.
            self.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nfrom long ago")
            self.close_connection = True
        elif path == "/large":
            self.respond(b"x" * (8 << 20))
        elif path == "/request":
            body = self.body()
            names = ("Content-Type", "Content-Length", "Transfer-Encoding", "Authorization", "Cookie", "X-Own", "User-Agent")
            sent = {name: self.headers[name] for name in names if name in self.headers}
            answer = {"method": self.command, "headers": sent, "bytes": len(body), "begins": body[:40].decode("latin-1")}
            self.respond(json.dumps(answer).encode(), kind="application/json", headers=[("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
        elif path == "/endless":
            self.send_response(200)
            self.end_headers()
            self.close_connection = True
            try:
                while True:
                    self.wfile.write(b"x" * 65536)
            except OSError:
                line(self.directory, "requests", "the endless answer has ended")
        elif path == "/authorization":
            self.respond(self.headers.get("Authorization", "-").encode())
        elif path == "/released" and not (self.directory / "released").exists():
            self.respond(b"", 404)
        elif self.command in ("POST", "PUT"):
            self.respond(b"%d bytes" % len(self.body()))
        else:
            self.respond(b"hello from %s" % path.encode())

    def file(self, host):
        found = self.sites.get(host, {}).get(self.path.partition("?")[0])
        if found is None:
            self.respond(b"not found", 404)
        else:
            kind, body = found
            self.respond(body, kind=kind)

    def git(self, _host):
        path, _, query = self.path.partition("?")
        environment = dict(
            os.environ,
            GIT_PROJECT_ROOT=str(self.directory),
            GIT_HTTP_EXPORT_ALL="1",
            PATH_INFO=path,
            QUERY_STRING=query,
            REQUEST_METHOD=self.command,
            CONTENT_TYPE=self.headers.get("Content-Type", ""),
            HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""),
            GIT_PROTOCOL=self.headers.get("Git-Protocol", ""),
        )
        answer = subprocess.run(
            ["git", "http-backend"], input=self.body(), env=environment, stdout=subprocess.PIPE, check=True
        )
        head, _, body = answer.stdout.partition(b"\r\n\r\n")
        headers = dict(row.split(": ", 1) for row in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        self.respond(body, status, headers.pop("Content-Type", "text/plain"), headers.items())


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        # The client has gone, as those do that do not trust the authority.
        pass

    def server_bind(self):
        # Not the one of HTTPServer, which asks for its own name.
        socketserver.TCPServer.server_bind(self)


def main():
    directory, address = pathlib.Path(sys.argv[1]), sys.argv[2]
    for name in ("names", "requests"):
        (directory / name).touch()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "authority.pem")
    packages.make_repository(directory)
    Handler.directory = directory
    Handler.sites = {INDEX: packages.index(), REGISTRY: packages.registry(f"https://{REGISTRY}")}
    print("started", flush=True)
    sys.stdin.readline()
    quiet = dnslib.server.DNSLogger(logf=lambda _: None)
    dnslib.server.DNSServer(Names(directory, address), address=address, port=53, logger=quiet).start_thread()
    plain, secure, more = (Server((address, port), Handler) for port in (80, 443, MORE_PORT))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*sorted(NAMES)).configure_cert(context)
    # The handshake is up to the thread of the connection.
    secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
    for server in (plain, secure, more):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


main()
