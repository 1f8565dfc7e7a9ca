"""`fetch(url, ...)`: the host makes the request, and decides about it. Redirects are requests of their own.

The call waits for the whole answer. In a durable run it is in the journal.
"""

import json as _json
import sys
from email.message import Message
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from .hints import Hint
from .toolerrors import FetchError, RefusedCall
from .wire import FETCH, FETCH_READ, FETCH_SEND

MAX_REDIRECTS = 20
# A larger body goes out in pieces.
PIECE_BYTES = 256 * 1024
MAX_URL_BYTES = 8 * 1024
MAX_HEADERS = 100
MAX_HEADER_BYTES = 24 * 1024
_PORTS = {"http": 80, "https": 443}
_OF_BODY = ("content-encoding", "content-language", "content-location", "content-type")
_OF_ORIGIN = ("authorization", "cookie", "proxy-authorization")
_NO_HOSTS = "No host was granted to this run: pass the data in with `context`, or call a tool."
_frame_at = sys._getframe
_decode = _json.JSONDecoder().decode


class FetchResponse:
    """The answer of a server."""

    def __init__(self, url: str, head: dict, content: bytes):
        self.url = url
        self.status = head["status"]
        self.reason = head["status_text"]
        # Names without case; `get_all` gives each of several.
        self.headers = Message()
        for name, value in head["headers"]:
            self.headers[name] = value
        self._content = content

    @property
    def ok(self) -> bool:
        """Whether the status says success."""
        return 200 <= self.status < 300

    def bytes(self) -> bytes:
        """The body."""
        return self._content

    def text(self) -> str:
        """The body as text."""
        charset = self.headers.get_content_charset("utf-8")
        try:
            return self._content.decode(charset, "replace")
        except LookupError:
            return self._content.decode("utf-8", "replace")

    def json(self):
        """The body as the value that its JSON stands for."""
        return _json.loads(self._content)

    def __repr__(self) -> str:
        return f"<FetchResponse {self.status} {self.url}>"


FetchResponse.__module__ = "builtins"


def make_fetch(calls, link, grants: dict):
    """`fetch` of one run."""
    has_hosts = grants.get("network", "none") != "none"

    def fetch(url, method="GET", headers=None, body=None, json=None, timeout=None):
        """Sends a request to a granted host and returns the answer: .status, .ok, .headers, .text(),
        .json(), .bytes()."""
        url, method = _checked_url(url), _checked_method(method)
        pairs = _pairs(headers)
        content = _content(body, json, pairs)
        milliseconds = None if timeout is None else max(int(timeout * 1000), 1)
        if not has_hosts:
            _refuse(link, url)
        for _ in range(MAX_REDIRECTS + 1):
            if len(url) > MAX_URL_BYTES or len(pairs) > MAX_HEADERS:
                raise ValueError("fetch: the URL or the headers are too long")
            head, got = _exchange(calls, (method, url, pairs), content, milliseconds)
            location = next((value for name, value in head["headers"] if name == "location"), None)
            if head["status"] not in (301, 302, 303, 307, 308) or location is None:
                return FetchResponse(url, head, got)
            before, url = url, _checked_url(urljoin(url, location))
            is_post = method == "POST" and head["status"] in (301, 302)
            if is_post or (head["status"] == 303 and method not in ("GET", "HEAD")):
                method, content = "GET", None
                pairs = [pair for pair in pairs if pair[0].lower() not in _OF_BODY]
            if _origin(url) != _origin(before):
                pairs = [pair for pair in pairs if pair[0].lower() not in _OF_ORIGIN]
        raise FetchError(f"fetch: more than {MAX_REDIRECTS} redirects")

    return fetch


def _exchange(calls, request, content, milliseconds):
    """One request and its answer: the head, and the whole body."""
    method, url, pairs = request
    is_large = content is not None and len(content) > PIECE_BYTES and not calls.is_durable
    if content is not None and not is_large:
        calls.check_body(content)
    forms = {"body": "none" if content is None else "pieces" if is_large else "whole"}
    forms["length"] = len(content) if is_large else None
    head = {
        "line": _line(calls), "method": method, "url": url, "headers": pairs,
        "timeout_ms": milliseconds, **forms,
    }  # fmt: skip
    pending = calls.start_step(FETCH, head, b"" if content is None or is_large else content)
    if is_large:
        _upload(calls, pending.number, content)
    reply = calls.reply_of(pending)
    first, _, got = reply.partition(b"\n")
    answer = _decode(first.decode())
    parts = [got]
    while not answer["is_whole"] and (len(parts) == 1 or parts[-1]):
        parts.append(calls.reply_of(calls.start_step(FETCH_READ, {"fetch": pending.number}, b"")))
    return answer, b"".join(parts)


def _upload(calls, fetch: int, content) -> None:
    for start in range(0, len(content), PIECE_BYTES):
        piece = content[start : start + PIECE_BYTES]
        is_last = start + PIECE_BYTES >= len(content)
        step = calls.start_step(FETCH_SEND, {"fetch": fetch, "last": is_last}, piece)
        try:
            calls.reply_of(step)
        except FetchError:
            # The server has answered, or is gone: the answer says which.
            return


def _line(calls):
    return calls.line_of(_frame_at(3))


def _refuse(link, url: str) -> None:
    link.denied(f"fetch({url!r})")
    parts = urlsplit(url)
    host = f"{parts.hostname}:{parts.port or _PORTS[parts.scheme]}"
    hint = Hint(_NO_HOSTS, "net", host)
    raise RefusedCall(f"fetch({url!r}) needs the network", code="permission.network", hint=hint)


def _checked_url(url) -> str:
    """The URL as it goes out: ASCII, without a fragment."""
    text = str(url)
    if any(ord(letter) < 33 and letter != " " or ord(letter) == 127 for letter in text):
        raise ValueError(f"fetch: {text!r} is not a URL: it has control characters")
    parts = urlsplit(text.strip())
    if parts.scheme not in _PORTS or not parts.netloc:
        raise ValueError(f"fetch: {text!r} is not a URL with http:// or https://")
    netloc = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    safe = "!#$%&'()*+,/:;=?@[]~|{}\\^`\"<>"
    path, query = quote(parts.path, safe), quote(parts.query, safe)
    return urlunsplit((parts.scheme, netloc, path or "/", query, ""))


def _checked_method(method) -> str:
    text = str(method)
    if not text.isascii() or not text.replace("-", "").replace("_", "").isalnum():
        raise ValueError(f"fetch: {text!r} is not a method")
    return text.upper()


def _pairs(headers) -> list:
    """Names and values of headers."""
    items = headers.items() if hasattr(headers, "items") else headers or ()
    pairs = []
    for name, value in items:
        name, value = str(name), str(value).strip(" \t\r\n")
        if not name.isascii() or any(letter in f"{name}{value}" for letter in "\r\n\0"):
            raise ValueError(f"fetch: the header {name!r} has characters that it cannot have")
        try:
            value.encode("latin-1")
        except UnicodeEncodeError:
            raise ValueError(f"fetch: the header {name!r} must be text in Latin-1") from None
        pairs.append([name, value])
    if sum(len(name) + len(value) for name, value in pairs) > MAX_HEADER_BYTES:
        raise ValueError("fetch: the headers are too long")
    return pairs


def _content(body, json, pairs: list):
    """The bytes of the body; its type becomes a header."""
    if json is not None:
        if body is not None:
            raise TypeError("fetch: give a body or json, not both")
        return _typed(_json.dumps(json).encode(), pairs, "application/json")
    if body is None:
        return None
    if isinstance(body, str):
        return _typed(body.encode("utf-8", "replace"), pairs, "text/plain;charset=UTF-8")
    if hasattr(body, "read"):
        body = body.read()
        return _content(body, None, pairs)
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    raise TypeError(f"fetch: a body is bytes, a str or a file, not {type(body).__name__}; use json=")


def _typed(content: bytes, pairs: list, kind: str) -> bytes:
    if not any(name.lower() == "content-type" for name, _ in pairs):
        pairs.append(["content-type", kind])
    return content


def _origin(url: str):
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme]
