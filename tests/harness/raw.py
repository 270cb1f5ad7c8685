"""Requests as bytes on a socket: halves, chunks, and what no client library would send."""

import contextlib
import http.client
import json
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PATIENCE_S = 15.0


@dataclass(frozen=True)
class RawAnswer:
    """One answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        body = json.loads(self.body)
        assert isinstance(body, dict), body
        return body

    @property
    def code(self) -> str:
        """The problem's code."""
        assert self.headers["content-type"].startswith("application/problem+json"), self
        return str(self.json["code"])


@contextlib.contextmanager
def connection(port: int) -> Iterator[socket.socket]:
    """A fresh connection to a server of this machine."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as plug:
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield plug


def read_answer(plug: socket.socket, method: str = "POST") -> RawAnswer:
    """The next answer on the connection."""
    reader = http.client.HTTPResponse(plug, method=method)
    try:
        reader.begin()
        headers = {name.lower(): value for name, value in reader.getheaders()}
        return RawAnswer(reader.status, headers, reader.read())
    finally:
        reader.close()


def exchange(port: int, request: bytes, method: str = "POST") -> RawAnswer:
    """Send bytes on a connection of their own and read one answer."""
    with connection(port) as plug:
        with contextlib.suppress(ConnectionError):
            plug.sendall(request)
        return read_answer(plug, method)


def post_head(path: str, headers: list[tuple[str, str]]) -> bytes:
    """The head of a POST with exactly these headers and a Host."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def post_request(path: str, body: bytes, headers: list[tuple[str, str]] | None = None) -> bytes:
    """A whole POST of JSON with a length."""
    given = [("Content-Type", "application/json")] if headers is None else headers
    return post_head(path, [*given, ("Content-Length", str(len(body)))]) + body


def chunked(*parts: bytes) -> bytes:
    """A body in chunks."""
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def reset(plug: socket.socket) -> None:
    """Close the connection with RST, as a client that vanished."""
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    plug.close()
