"""Single requests to a server on this machine, outside of any measurement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException


@dataclass(frozen=True)
class Answer:
    """One answer as it came."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        """The value of the first header of that name."""
        return next(value for key, value in self.headers if key.lower() == name)


def ask(port: int, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Answer:
    """One request on a connection of its own."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body or None, dict(headers or {}))
        response = connection.getresponse()
        return Answer(response.status, response.getheaders(), response.read())
    finally:
        connection.close()


def answers(port: int, path: str) -> bool:
    """Whether a server answers there, with whatever status."""
    try:
        ask(port, "GET", path)
    except (OSError, HTTPException):
        return False
    return True
