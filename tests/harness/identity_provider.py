"""An identity provider of this machine: signs tokens, and serves its key set over HTTP as it is told to."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from coatcheck.core.job import InstantMs

ISSUER = "https://login.example.org/"
AUDIENCE = "jobs"
SCOPES = "submit read cancel"


class SigningKey:
    """One key pair: RSA for algorithms of that kind, else a curve of P-256."""

    def __init__(self, kid: str | None, algorithm: str = "ES256", bits: int = 2048) -> None:
        self.kid, self.algorithm = kid, algorithm
        is_rsa = algorithm.startswith(("RS", "PS"))
        self.private: Any = rsa.generate_private_key(65537, bits) if is_rsa else ec.generate_private_key(ec.SECP256R1())

    def public(self, **changes: Any) -> dict[str, Any]:
        """Its public half as a member of a key set."""
        algorithm: Any = RSAAlgorithm if self.algorithm.startswith(("RS", "PS")) else ECAlgorithm
        made: dict[str, Any] = json.loads(algorithm.to_jwk(self.private.public_key()))
        named = {} if self.kid is None else {"kid": self.kid}
        return {**made, **named, "alg": self.algorithm, "use": "sig", **changes}

    def sign(self, now: InstantMs, headers: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """A token that is good for a minute, with `changes` to its claims; what is changed to None is left out."""
        seconds = now // 1000
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "somebody",
            "tenant": "ours",
            "scope": SCOPES,
            "iat": seconds,
            "exp": seconds + 60,
            **changes,
        }
        given = {name: value for name, value in claims.items() if value is not None}
        named = {} if self.kid is None else {"kid": self.kid}
        return jwt.encode(given, self.private, self.algorithm, headers={**named, **(headers or {})})


class KeySetServer:
    """Serves `answer` for the path /keys and counts how often it is asked."""

    def __init__(self) -> None:
        self.answer = b""
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.url = ""
        self._server: asyncio.Server | None = None

    def publish(self, *members: Mapping[str, Any]) -> None:
        body = json.dumps({"keys": list(members)}).encode()
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{self.port}/keys"

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        self.may_answer.set()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        assert request.startswith(b"GET /keys HTTP/1.1\r\n"), request
        self.asked += 1
        await self.may_answer.wait()
        writer.write(self.answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def key_set_server() -> AsyncIterator[KeySetServer]:
    server = KeySetServer()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
