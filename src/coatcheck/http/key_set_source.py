"""Where an identity provider's key set is read from: a file, or a URL that is asked without ever blocking the loop.

A provider that answers slowly, at length or elsewhere is as good as one that is away. Redirects are not followed.
"""

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httptools

from coatcheck.admission.key_sets import KeySetUnavailable
from coatcheck.core import limits
from coatcheck.setting_access import FILE_PREFIX

_PIECE_BYTES: Final = 64 * 1024
_PORTS: Final = {"http": 80, "https": 443}


class KeySetFile:
    """A file, which may be replaced at any time."""

    is_local = True

    def __init__(self, path: Path) -> None:
        self._path = path

    async def fetch(self) -> bytes:
        return await asyncio.to_thread(self._read)

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                raw = file.read(limits.KEY_SET_BYTES_MAX + 1)
        except OSError as error:
            raise KeySetUnavailable(f"{self._path} cannot be read ({error.strerror})") from None
        if len(raw) > limits.KEY_SET_BYTES_MAX:
            raise KeySetUnavailable(f"{self._path} has more than {limits.KEY_SET_BYTES_MAX} bytes")
        return raw


class KeySetUrl:
    """An https URL, or an http URL of this machine."""

    is_local = False

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or _PORTS[parts.scheme]
        self._tls = None if parts.scheme == "http" else tls or ssl.create_default_context()
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._request = (
            f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: application/jwk-set+json, application/json\r\n"
            "User-Agent: coatcheck\r\nConnection: close\r\n\r\n"
        ).encode("ascii")

    async def fetch(self) -> bytes:
        try:
            async with asyncio.timeout(limits.KEY_SET_S_MAX):
                return await self._fetch()
        except TimeoutError:
            raise KeySetUnavailable(f"{self._host} took more than {limits.KEY_SET_S_MAX:g} seconds") from None
        except (OSError, httptools.HttpParserError) as error:
            raise KeySetUnavailable(f"{self._host} cannot be asked ({type(error).__name__})") from None

    async def _fetch(self) -> bytes:
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        try:
            writer.write(self._request)
            return await self._answer(reader)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        answer = _Answer()
        parser = httptools.HttpResponseParser(answer)
        while not answer.is_complete:
            piece = await reader.read(_PIECE_BYTES)
            if not piece:
                break
            parser.feed_data(piece)
            if len(answer.body) > limits.KEY_SET_BYTES_MAX:
                raise KeySetUnavailable(f"{self._host} answered with more than {limits.KEY_SET_BYTES_MAX} bytes")
        if not answer.body:
            raise KeySetUnavailable(f"{self._host} answered nothing")
        if parser.get_status_code() != 200:
            raise KeySetUnavailable(f"{self._host} answered {parser.get_status_code()}")
        return bytes(answer.body)


class _Answer:
    """What the parser tells."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.is_complete = False

    def on_body(self, piece: bytes) -> None:
        self.body += piece

    def on_message_complete(self) -> None:
        self.is_complete = True


def key_set_source(place: str) -> KeySetFile | KeySetUrl:
    """The source that the setting `jwt_keys` names."""
    if place.startswith(FILE_PREFIX):
        return KeySetFile(Path(place.removeprefix(FILE_PREFIX)))
    return KeySetUrl(place)
