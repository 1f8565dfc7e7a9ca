"""The HTTPS server of the benchmark: `/BYTES` answers with so many bytes.

Usage: server.py CERTIFICATE_AND_KEY. Prints its port, and ends when its input does.
"""

import socket
import ssl
import sys
import threading

PIECE = memoryview(bytes(1 << 20))


def serve(context, plain):
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        with context.wrap_socket(plain, server_side=True) as connection:
            requests = connection.makefile("rb")
            while first := requests.readline():
                left = int(first.split()[1][1:])
                while len(requests.readline()) > 2:
                    pass
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % left)
                while left:
                    piece = PIECE[:left]
                    connection.sendall(piece)
                    left -= len(piece)
    except OSError:
        # The client has gone.
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0), backlog=128)
print(listener.getsockname()[1], flush=True)


def accept():
    while True:
        threading.Thread(target=serve, args=(context, listener.accept()[0]), daemon=True).start()


threading.Thread(target=accept, daemon=True).start()
sys.stdin.read()
