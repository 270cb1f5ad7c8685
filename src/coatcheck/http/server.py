"""The listening side of the edge: sockets, TLS and the orderly end of every connection.

uvicorn's protocol parses and answers; when to listen, how long to go on and what to do about signals is decided by
whoever holds the server, because uvicorn alone would close its sockets while clients still count on an answer.
"""

import asyncio
import contextlib
import resource
import socket
import ssl
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from coatcheck.http.connection import Connection
from coatcheck.http.connections import ConnectionLimits, Connections
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import Clock

_BACKLOG = 2048
_DATE_EVERY_S = 0.5
_FILES_FOR_OTHERS = 256
_FILES_FOR_OTHERS_MIN = 48
_LINGER_S = 5.0
_LAST_CHANCE_S = 0.2


class ServerRefused(Exception):
    """The server cannot listen as it is told to; the message says why in one sentence."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where to listen, under which certificate, and the bounds of a connection."""

    host: str
    port: int
    limits: ConnectionLimits
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None


class HttpServer:
    """Serves one ASGI app. `bind` takes the port, `start` begins to answer, `close` ends in order, `abort` at once."""

    def __init__(self, options: ServerOptions, metrics: Metrics, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._state = ServerState()
        self._connections = Connections(_affordable(options.limits), metrics)
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self._dates: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The base URL of the first address it listens on."""
        scheme = "http" if self._options.tls_cert is None else "https"
        host, port = self._sockets[0].getsockname()[:2]
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def bind(self) -> None:
        """Take the port, without answering yet.

        Raises:
            ServerRefused: it is taken, or the address is not this machine's.
        """
        where = f"{self._options.host}:{self._options.port}"
        try:
            self._sockets = _bound(self._options.host, self._options.port)
        except OSError as error:
            raise ServerRefused(f"host and port: cannot listen on {where} ({_reason(error)}).") from error

    async def start(self, app: ASGIApp) -> None:
        """Begin to accept connections.

        Raises:
            ServerRefused: the certificate, key or client authorities cannot be used.
        """
        context = _tls_context(self._options)
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
        )
        config.load()
        loop = asyncio.get_running_loop()

        def connection() -> Connection:
            return Connection(config, self._state, loop, self._connections)

        handshake_s = None if context is None else self._options.limits.headers_timeout_s
        self._set_date()
        self._dates = loop.create_task(self._keep_date(), name="coatcheck-http-date")
        for listener in self._sockets:
            self._servers.append(
                await loop.create_server(
                    connection, sock=listener, ssl=context, backlog=_BACKLOG, ssl_handshake_timeout=handshake_s
                )
            )

    async def close(self, linger_s: float = _LINGER_S) -> None:
        """Stop listening, let answers that were begun come to their end for `linger_s` seconds, then abort."""
        self._stop_listening()
        self._connections.outgoing.flush()
        for connection in list(self._state.connections):
            connection.shutdown()
        await self._connections.wait_empty(linger_s)
        await self.abort()

    async def abort(self) -> None:
        """Close every connection now."""
        self._stop_listening()
        self._connections.outgoing.flush()
        for connection in list(self._state.connections):
            connection.transport.abort()
        for task in list(self._state.tasks):
            task.cancel()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=_LAST_CHANCE_S)
        if self._dates is not None:
            self._dates.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._dates
            self._dates = None

    def _stop_listening(self) -> None:
        for server in self._servers:
            server.close()
        for listener in self._sockets:
            listener.close()
        self._servers.clear()

    async def _keep_date(self) -> None:
        while True:
            await asyncio.sleep(_DATE_EVERY_S)
            self._set_date()

    def _set_date(self) -> None:
        date = formatdate(self._clock.now() // 1000, usegmt=True)
        self._state.default_headers = [(b"date", date.encode("ascii"))]


def _bound(host: str, port: int) -> list[socket.socket]:
    """One socket for each address of the host, all on the same port."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = list(dict.fromkeys((family, address[0]) for family, _, _, _, address in found))
    sockets: list[socket.socket] = []
    try:
        for family, address in addresses:
            listener = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address, port))
            port = listener.getsockname()[1]
    except OSError:
        for listener in sockets:
            listener.close()
        raise
    return sockets


def _affordable(limits: ConnectionLimits) -> ConnectionLimits:
    """Raise the process's limit of open files as far as it goes, and take no more connections than it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections_max + _FILES_FOR_OTHERS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return limits
    for_others = min(_FILES_FOR_OTHERS, max(_FILES_FOR_OTHERS_MIN, soft * 3 // 4))
    return limits.with_connections_max(max(1, min(limits.connections_max, soft - for_others)))


def _tls_context(options: ServerOptions) -> ssl.SSLContext | None:
    if options.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(options.tls_cert, options.tls_key)
    except (ssl.SSLError, OSError) as error:
        raise ServerRefused(f"tls_cert and tls_key do not make a certificate ({_reason(error)}).") from error
    if options.tls_client_ca is not None:
        try:
            context.load_verify_locations(options.tls_client_ca)
        except (ssl.SSLError, OSError) as error:
            raise ServerRefused(f"tls_client_ca holds no certificate authority ({_reason(error)}).") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _reason(error: OSError) -> str:
    reason = getattr(error, "reason", None) or error.strerror or str(error)
    return str(reason).rstrip(".").lower()
