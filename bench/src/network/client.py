import base64
import http.client
import os
import ssl
import time
from urllib.parse import unquote, urlsplit


def measure(host, port, requests, size):
    """Times requests on connections of their own, requests on one connection, and a large body."""
    context = ssl.create_default_context()
    proxy = os.environ.get("HTTPS_PROXY")
    buffer = bytearray(1 << 20)

    def connect():
        if not proxy:
            return http.client.HTTPSConnection(host, port, context=context)
        at = urlsplit(proxy)
        connection = http.client.HTTPSConnection(at.hostname, at.port, context=context)
        headers = {}
        if at.username:
            pair = f"{unquote(at.username)}:{unquote(at.password)}"
            headers["Proxy-Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        connection.set_tunnel(host, port, headers)
        return connection

    def get(connection, size):
        connection.request("GET", f"/{size}")
        answer = connection.getresponse()
        received = 0
        while part := answer.readinto(buffer):
            received += part
        assert (answer.status, received) == (200, size), (answer.status, received)

    def timed(work):
        began = time.perf_counter()
        work()
        return 1000 * (time.perf_counter() - began)

    def alone():
        connection = connect()
        get(connection, 5)
        connection.close()

    kept = connect()
    get(kept, 5)
    alone()
    fresh = [timed(alone) for _ in range(requests)]
    reused = [timed(lambda: get(kept, 5)) for _ in range(requests)]
    large = timed(lambda: get(kept, size)) if size else 0
    return {"fresh": fresh, "reused": reused, "large": large}
