"""View tokens for browsers: made by a client for one of its jobs, and exchanged for a cookie by the page that has one.

A cookie comes along with requests that no page of ours has made, so it is good for reading its job and never for
changing anything.
"""

from typing import Final
from urllib.parse import urlsplit

import orjson

from coatcheck.admission.admit import parse_body
from coatcheck.admission.credentials_views import ViewTokens
from coatcheck.admission.input_faults import escape_step
from coatcheck.admission.media_type import require_json
from coatcheck.app import Operation
from coatcheck.completion.representation import instant
from coatcheck.core import limits
from coatcheck.core.jsontext import Json
from coatcheck.core.problems import FieldError, Refused
from coatcheck.http.body import read_body
from coatcheck.http.exchange import Exchange
from coatcheck.http.identity import VIEW_COOKIE, read_token
from coatcheck.http.job_answers import find_job
from coatcheck.http.negotiation import require_json_accepted
from coatcheck.http.refusals import forbidden
from coatcheck.http.services import HttpServices
from coatcheck.setting_values import is_loopback

_NO_STORE: Final = (b"cache-control", b"no-store")


class MakeViewToken:
    """POST to a job's view-token URL."""

    def __init__(self, services: HttpServices, views: ViewTokens) -> None:
        self._services = services
        self._views = views

    async def __call__(self, exchange: Exchange, operation: Operation) -> None:
        require_json_accepted(exchange.headers)
        lifetime_s = await self._lifetime_s(exchange)
        job = await find_job(self._services, exchange)
        token, expires_at = self._views.make(exchange.identity, job.id, lifetime_s)
        body = orjson.dumps({"token": token, "expires_at": instant(expires_at)})
        await exchange.answer_json(200, body, [_NO_STORE])

    async def _lifetime_s(self, exchange: Exchange) -> int:
        timeout_s = self._services.settings.body_timeout_s
        raw_body = await read_body(exchange, limits.VIEW_BODY_BYTES_MAX, timeout_s)
        if not raw_body:
            return limits.VIEW_TOKEN_S_DEFAULT
        require_json(exchange.headers.get(b"content-type", ()))
        return read_lifetime(parse_body(raw_body))


class BeginViewSession:
    """POST to a job's view-session URL, with a view token in `Authorization`."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services

    async def __call__(self, exchange: Exchange, operation: Operation) -> None:
        token, expires_at = read_token(exchange.headers), exchange.identity.expires_at
        if token is None or expires_at is None or exchange.identity.job_id is None:
            raise forbidden("A view session is begun with a view token of the job.")
        await read_body(exchange, limits.VIEW_BODY_BYTES_MAX, self._services.settings.body_timeout_s)
        job = await find_job(self._services, exchange)
        left_s = max((expires_at - self._services.store.clock.now()) // 1000, 0)
        path = urlsplit(exchange.urls.status_url(operation.name, job.id)).path.replace(";", "%3B")
        cookie = f"{VIEW_COOKIE}={token.decode('ascii')}; Path={path}; Max-Age={left_s}; HttpOnly; SameSite=Strict"
        if not self._is_plain_loopback(exchange):
            cookie += "; Secure"
        await exchange.answer_empty(204, [_NO_STORE, (b"set-cookie", cookie.encode("ascii"))])

    def _is_plain_loopback(self, exchange: Exchange) -> bool:
        """Whether the browser talks to this very machine without TLS, where it would not send a Secure cookie back."""
        public_url = self._services.settings.public_url
        if public_url is not None:
            url = urlsplit(public_url)
        else:
            host = exchange.headers.get(b"host", (b"",))[0].decode("latin-1")
            url = urlsplit(f"{exchange.scope.get('scheme', 'http')}://{host}")
        try:
            return url.scheme == "http" and is_loopback(url.hostname or "")
        except ValueError:
            return False


def read_lifetime(body: Json) -> int:
    """The lifetime in a body, in seconds, never more than VIEW_TOKEN_S_MAX.

    Raises:
        Refused: `invalid-request`.
    """
    errors = _faults(body)
    if errors:
        raise Refused("invalid-request", 'The body must be {"lifetime_s": …} or empty.', errors=errors)
    lifetime_s = _seconds(body.get("lifetime_s")) if isinstance(body, dict) else None
    return limits.VIEW_TOKEN_S_DEFAULT if lifetime_s is None else min(lifetime_s, limits.VIEW_TOKEN_S_MAX)


def _seconds(value: Json) -> int | None:
    """A whole number above 0, however it is written: 60.0 is one too."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        return None
    return int(value) if value > 0 else None


def _faults(body: Json) -> list[FieldError]:
    if not isinstance(body, dict):
        return [FieldError("", "This must be an object.")]
    faults = [FieldError("/" + escape_step(name), "This member is not known.") for name in body if name != "lifetime_s"]
    lifetime_s = body.get("lifetime_s")
    if lifetime_s is not None and _seconds(lifetime_s) is None:
        faults.insert(0, FieldError("/lifetime_s", "This must be a whole number of seconds above 0."))
    return faults[: limits.INPUT_ERRORS_LISTED_MAX]
