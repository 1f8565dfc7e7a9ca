"""The servers of the test internet: names, HTTP, HTTPS, git, an index for pip, a registry for npm.

Usage: servers.py DIRECTORY ADDRESS. Prints `started`, waits for a line, listens, prints `ready`, and ends
when its input does. Every request is a line of DIRECTORY/requests, every name that was asked for one of
DIRECTORY/names.
"""

import json
import os
import pathlib
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
# The last one leads to an address that is not public.
INNER = "inner.example.com"
NAMES = {WEB, GIT, INDEX, REGISTRY, "other.example.com", INNER}


def line(directory, name, text):
    with (directory / name).open("a") as log:
        log.write(f"{text}\n")


class Names(dnslib.server.BaseResolver):
    def __init__(self, directory, address):
        self.directory, self.address = directory, address

    def resolve(self, request, handler):
        name = str(request.q.qname).rstrip(".").lower()
        line(self.directory, "names", name)
        reply = request.reply()
        if name not in NAMES:
            reply.header.rcode = dnslib.RCODE.NXDOMAIN
        elif request.q.qtype == dnslib.QTYPE.A:
            reply.add_answer(dnslib.RR(request.q.qname, rdata=dnslib.A("10.1.2.3" if name == INNER else self.address), ttl=60))
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
        site = {WEB: self.web, GIT: self.git}.get(host, self.file)
        site(host)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = serve

    def web(self, host):
        path = self.path.partition("?")[0]
        if path == "/chunked":
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
        elif path == "/redirect":
            # /redirect?STATUS,LOCATION
            status, location = self.path.partition("?")[2].split(",", 1)
            self.body()
            self.respond(b"", int(status), headers=[("Location", location)])
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
    plain, secure = Server((address, 80), Handler), Server((address, 443), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*sorted(NAMES)).configure_cert(context)
    # The handshake is up to the thread of the connection.
    secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
    for server in (plain, secure):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


main()
