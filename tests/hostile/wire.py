"""A connection on which a test says what it likes, and reads answers one by one, however they were sent."""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from harness.raw import RawAnswer, connection

HOST = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"


class Closed(Exception):
    """The server closed the connection in the place of an answer."""


@dataclass
class Wire:
    """Keeps what was read beyond one answer for the next."""

    plug: socket.socket
    buffer: bytes = b""

    def say(self, *parts: bytes) -> None:
        """Send, as far as the server takes it."""
        with contextlib.suppress(ConnectionError):
            self.plug.sendall(b"".join(parts))

    def answer(self, method: str = "POST") -> RawAnswer:
        """The next answer that is not 100.

        Raises:
            Closed: there is none.
        """
        head, _, self.buffer = self.until(b"\r\n\r\n").partition(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").split("\r\n")
        version, status, _ = status_line.split(" ", 2)
        assert version == "HTTP/1.1", head
        if status == "100":
            return self.answer(method)
        pairs = [line.partition(": ") for line in lines]
        headers = {name.lower(): value for name, _, value in pairs}
        assert len(headers) == len(pairs), f"a header stands twice: {head!r}"
        has_body = method != "HEAD" and status not in {"204", "304"}
        return RawAnswer(int(status), headers, self._body(headers) if has_body else b"")

    def answers(self) -> list[RawAnswer]:
        """All answers until the server closes."""
        found: list[RawAnswer] = []
        with contextlib.suppress(Closed):
            while True:
                found.append(self.answer())
        assert self.buffer == b"", self.buffer
        return found

    def is_closed(self) -> bool:
        """Whether the server says nothing more, and has closed."""
        return not self._more()

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return self._take(int(headers["content-length"]))
        body = b""
        while True:
            size, _, self.buffer = self.until(b"\r\n").partition(b"\r\n")
            part = self._take(int(size, 16) + 2)[:-2]
            if not part:
                return body
            body += part

    def _take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            self._read()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def until(self, mark: bytes) -> bytes:
        """What has come, once the mark is in it; none of it counts as read.

        Raises:
            Closed: it never came.
        """
        while mark not in self.buffer:
            self._read()
        return self.buffer

    def _read(self) -> None:
        part = self._more()
        if not part:
            raise Closed(self.buffer)
        self.buffer += part

    def _more(self) -> bytes:
        try:
            return self.plug.recv(262_144)
        except ConnectionError:
            return b""


@contextlib.contextmanager
def wired(port: int) -> Iterator[Wire]:
    """A fresh connection to a server of this machine."""
    with connection(port) as plug:
        yield Wire(plug)


def get(path: str, *headers: str) -> bytes:
    """The bytes of a GET."""
    return request("GET", path, headers)


def post(path: str, body: bytes, *headers: str) -> bytes:
    """The bytes of a POST of JSON."""
    length = f"Content-Length: {len(body)}"
    return request("POST", path, ("Content-Type: application/json", length, *headers)) + body


def post_in_chunks(path: str, chunks: bytes, *headers: str) -> bytes:
    """The bytes of a POST of JSON in chunks, which are given as they are sent."""
    coded = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    return request("POST", path, (*coded, *headers)) + chunks


def request(method: str, path: str, headers: tuple[str, ...] = ()) -> bytes:
    """The bytes of a head with a Host and these header lines."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode("latin-1")
