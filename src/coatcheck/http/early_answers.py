"""Answers to what never became a request: as bytes, before there is anything that could answer. They close."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

import orjson

from coatcheck.admission.correlation import new_correlation_id
from coatcheck.core.problems import PROBLEMS
from coatcheck.http.direct import RawHeaders

_NO_REQUEST: Final = b"What was sent cannot be read as an HTTP request in exactly one way."


def early_answer(code: str, detail: str, default_headers: RawHeaders) -> bytes:
    """The problem of this code."""
    kind, correlation_id = PROBLEMS[code], new_correlation_id()
    problem = {
        "type": f"/problems/{code}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "code": code,
        "correlation_id": correlation_id,
    }
    headers = [*default_headers, (b"x-correlation-id", correlation_id.encode("ascii"))]
    return _answer(kind.status, b"application/problem+json", orjson.dumps(problem), headers)


def unreadable_answer(default_headers: RawHeaders) -> bytes:
    """What cannot be told from another protocol is answered with plain text."""
    return _answer(400, b"text/plain; charset=utf-8", _NO_REQUEST, default_headers)


def _answer(status: int, content_type: bytes, body: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    own = [(b"content-type", content_type), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    start = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode("ascii")
    return b"\r\n".join([start, *map(b": ".join, [*headers, *own]), b"", body])
