"""Reading from a request's headers what it shows of who it is from. Two credentials at once are none."""

from typing import Final

from coatcheck.admission.credentials_gateway import GatewayTrust, gateway_name
from coatcheck.admission.headers import HeaderValues
from coatcheck.admission.identity import Credential, Unauthenticated
from coatcheck.core import limits
from coatcheck.core.api_keys import KEY_PREFIX
from coatcheck.http.exchange import Exchange
from coatcheck.settings import Settings

VIEW_COOKIE: Final = "coatcheck_view"

_COOKIE_START: Final = VIEW_COOKIE.encode() + b"="
_KEY_PREFIX: Final = KEY_PREFIX.encode()
_SCHEME: Final = b"bearer "
_SCHEME_BYTES: Final = len(_SCHEME)


class CredentialReader:
    """Knows in which headers credentials come."""

    def __init__(self, settings: Settings) -> None:
        self._trust: GatewayTrust | None = None
        self._gateway_header = settings.gateway_header.lower().encode()
        self._secret_header = settings.gateway_secret_header.lower().encode()
        if "gateway" in settings.auth:
            secrets = [secret.get_secret_value().encode() for secret in settings.gateway_secrets]
            self._trust = GatewayTrust(secrets, settings.gateway_networks)

    def read(self, exchange: Exchange, *, may_be_cookie: bool) -> Credential:
        """What the request shows.

        Raises:
            Unauthenticated: nothing, or what cannot be a credential.
        """
        if self._trust is not None:
            named = self._named_by_gateway(exchange, self._trust)
            if named is not None:
                return named
        token = read_token(exchange.headers)
        if token is None and may_be_cookie:
            token = _view_cookie(exchange)
        if token is None:
            raise Unauthenticated("missing")
        return Credential(token)

    def _named_by_gateway(self, exchange: Exchange, trust: GatewayTrust) -> Credential | None:
        """Whom the gateway names. What anybody else says in its headers counts for nothing."""
        values = exchange.headers.get(self._gateway_header)
        if values is None:
            return None
        client = exchange.scope.get("client")
        if not trust.is_proven(client[0] if client else None, exchange.headers.get(self._secret_header, ())):
            return None
        name = gateway_name(values)
        if name is None:
            raise Unauthenticated("malformed")
        return Credential(b"", name)


def read_token(headers: HeaderValues) -> bytes | None:
    """The token of `Authorization: Bearer`, or the key of `apikey`; None where neither is there.

    Raises:
        Unauthenticated: there are several, or it can be none.
    """
    bearers, keys = headers.get(b"authorization"), headers.get(b"apikey")
    values = keys if bearers is None else bearers
    if values is None:
        return None
    if len(values) > 1 or (bearers is not None and keys is not None):
        raise Unauthenticated("ambiguous")
    value = values[0]
    if len(value) > limits.CREDENTIAL_BYTES_MAX:
        raise Unauthenticated("malformed")
    if bearers is None:
        if not value.startswith(_KEY_PREFIX):
            raise Unauthenticated("malformed")
        return value
    token = value[_SCHEME_BYTES:].strip(b" ")
    if value[:_SCHEME_BYTES].lower() != _SCHEME or not token:
        raise Unauthenticated("malformed")
    return token


def _view_cookie(exchange: Exchange) -> bytes | None:
    """The token of a view session. Of several the first counts, which is the one of the longest path (RFC 6265)."""
    for value in exchange.headers.get(b"cookie", ()):
        for pair in value.split(b";"):
            cookie = pair.strip(b" ")
            if cookie.startswith(_COOKIE_START):
                return cookie.removeprefix(_COOKIE_START)
    return None
