"""Who may use the operators' API: whoever shows the operator's key, compared in a time that tells nothing of it."""

import hmac
from collections.abc import Awaitable

from coatcheck.core.problems import Refused
from coatcheck.http.exchange import Exchange
from coatcheck.http.reads import Answerer
from coatcheck.http.refusals import not_found
from coatcheck.settings import Settings

_SCHEME = b"bearer "


class AdminDoor:
    """Lets operators in. Without a configured key there is no such API."""

    def __init__(self, settings: Settings) -> None:
        key = settings.operator_key
        self._key = None if key is None else key.get_secret_value().encode()

    def before(self, answerer: Answerer) -> Answerer:
        """The answerer behind the door."""

        def answer(exchange: Exchange) -> Awaitable[None]:
            self._check(exchange)
            return answerer(exchange)

        return answer

    def _check(self, exchange: Exchange) -> None:
        if self._key is None:
            raise not_found()
        values = exchange.headers.get(b"authorization", ())
        given = values[0] if len(values) == 1 else b""
        token = given[len(_SCHEME) :].strip() if given[: len(_SCHEME)].lower() == _SCHEME else b""
        if not hmac.compare_digest(token, self._key):
            detail = "This takes the operator's key, and the request does not show it."
            raise Refused("unauthenticated", detail, headers=[("WWW-Authenticate", 'Bearer realm="coatcheck"')])
