"""Reading a request's body within its bounds of size and time, and clearing away what a refusal leaves unread."""

import asyncio

from starlette.types import Message

from coatcheck.admission.admit import too_large
from coatcheck.core import limits
from coatcheck.core.problems import Refused
from coatcheck.http.begun import Begun
from coatcheck.http.exchange import ClientGone, Exchange
from coatcheck.http.patience import patient
from coatcheck.http.room import Share


async def read_body(exchange: Exchange, bytes_max: int, timeout_s: float, share: Share | None = None) -> bytes:
    """The whole body, with a declared length or in chunks; one that does not come at once is taken from `share`.

    Whoever sends it slowly is asked again who it is once it is there: a credential is not to outlive its end by it.

    Raises:
        Refused: `payload-too-large`, `saturated` where there is no room for it, `request-timeout` where it is not
            complete after `timeout_s` seconds, or `unauthenticated`.
        ClientGone: the client left in the middle of it.
        StoreUnavailable: whether the credential is still good cannot be told now.
    """
    if _declared_bytes(exchange) > bytes_max:
        raise too_large(bytes_max)
    at_once_max = min(bytes_max, limits.BODY_AT_ONCE_BYTES_MAX)
    whole = None if exchange.direct is None else exchange.direct.take_body(at_once_max)
    if whole is not None:
        exchange.has_read_body = True
        return whole
    first = Begun(exchange.receive())
    if first.is_done:
        body, has_more = _part(exchange, first.result)
        if not has_more and len(body) <= at_once_max:
            return body
    try:
        async with patient(timeout_s) as timeout:
            body = await _gather(exchange, first, bytes_max, share)
    except TimeoutError:
        if not timeout.expired():
            raise
        exchange.has_stalled = True
        raise Refused("request-timeout", f"The body was not complete after {timeout_s:g} seconds.") from None
    exchange.has_waited = True
    await exchange.gatekeeper.admit_again(exchange)
    return body


async def drain_body(exchange: Exchange) -> bool:
    """Read and forget what is left of the body, so that its sender comes to read the answer.

    Returns False where the connection cannot be used any more: too much is left, it comes too slowly, or the client
    waits for leave to send it (Expect: 100-continue).

    Raises:
        ClientGone: the client left.
    """
    if exchange.has_read_body or not _has_body(exchange):
        return True
    if exchange.has_stalled or b"expect" in exchange.headers:
        return False
    try:
        async with asyncio.timeout(limits.DRAIN_BODY_S_MAX):
            return await _forget(exchange)
    except TimeoutError:
        return False


async def _gather(exchange: Exchange, first: Begun[Message], bytes_max: int, share: Share | None) -> bytes:
    body, has_more = _part(exchange, first.result if first.is_done else await first)
    parts, size = [body], len(body)
    while True:
        if share is not None:
            share.take(len(body))
        if not has_more or size > bytes_max:
            break
        body, has_more = await _next_part(exchange)
        parts.append(body)
        size += len(body)
    if size > bytes_max:
        raise too_large(bytes_max)
    return b"".join(parts)


async def _forget(exchange: Exchange) -> bool:
    left, has_more = limits.DRAIN_BODY_BYTES_MAX, True
    while has_more and left > 0:
        body, has_more = await _next_part(exchange)
        left -= len(body)
    return not has_more


async def _next_part(exchange: Exchange) -> tuple[bytes, bool]:
    return _part(exchange, await exchange.receive())


def _part(exchange: Exchange, message: Message) -> tuple[bytes, bool]:
    if message["type"] == "http.disconnect":
        raise ClientGone
    has_more = bool(message.get("more_body", False))
    exchange.has_read_body = not has_more
    body: bytes = message.get("body", b"")
    return body, has_more


def _declared_bytes(exchange: Exchange) -> int:
    values = exchange.headers.get(b"content-length")
    return int(values[0]) if values and values[0].isdigit() and len(values[0]) < 20 else 0


def _has_body(exchange: Exchange) -> bool:
    return _declared_bytes(exchange) > 0 or b"transfer-encoding" in exchange.headers
