"""Nobody reaches a resource but past here: who it is, whether the scope is theirs, whether the tenant may do it now."""

import hmac
from typing import Final

from pydantic import SecretStr

from coatcheck.admission.identity import (
    EVERYBODY,
    Credential,
    Identity,
    ProviderUnavailable,
    Unauthenticated,
)
from coatcheck.core.scopes import Scope
from coatcheck.http.access import Access
from coatcheck.http.exchange import Exchange
from coatcheck.http.identity import CredentialReader, read_token
from coatcheck.http.refusals import forbidden, not_found, provider_unavailable, tenant_suspended, unauthenticated
from coatcheck.http.services import HttpServices

_READING: Final = frozenset({"GET", "HEAD"})
OPERATOR: Final = Identity("", frozenset({Scope.ADMIN}), "operator")


class Doorkeeper:
    """Lets requests in, each with its identity, or refuses them in the words that suit everybody."""

    def __init__(self, services: HttpServices) -> None:
        settings = services.settings
        if settings.has_auth and services.authentication is None:
            raise RuntimeError("authentication is configured and nobody is there to do it")
        self._authentication = services.authentication
        self._metrics = services.metrics
        self._asks_clients = settings.has_auth
        self._reader = CredentialReader(settings)
        self._operator_keys = _secrets(settings.operator_key)
        self._metrics_keys = _secrets(settings.metrics_key, settings.operator_key)
        self._are_metrics_open = settings.metrics_open or (not settings.has_auth and settings.metrics_key is None)

    def admit(self, exchange: Exchange, access: Access) -> bool:
        """Let the request in if that can be told at once. False: `admit_later` has to ask first.

        Raises:
            Refused: `unauthenticated`, `forbidden`, `tenant-suspended` or `not-found`.
        """
        if access.scope is None:
            return True
        if access.scope is Scope.ADMIN or not self._asks_clients:
            return self._admit_apart(exchange, access)
        try:
            identity = self._recalled(self._credential(exchange, access))
        except Unauthenticated as error:
            raise self._refused(error) from None
        if identity is None:
            return False
        self._let_in(exchange, access, identity)
        return True

    async def admit_later(self, exchange: Exchange, access: Access) -> None:
        """Let the request in, after asking the store or an identity provider.

        Raises:
            Refused: as `admit`, and `identity-provider-unavailable`.
            StoreUnavailable: that cannot be told now.
        """
        authentication = self._authentication
        if authentication is None:
            raise self._refused(Unauthenticated("unknown"))
        if not self._asks_clients and access.scope is not Scope.ADMIN:
            await authentication.directory.confirmed()
            self._let_in(exchange, access, EVERYBODY)
            return
        try:
            identity = await authentication.find(self._credential(exchange, access))
        except Unauthenticated as error:
            raise self._refused(error) from None
        except ProviderUnavailable:
            raise provider_unavailable() from None
        self._let_in(exchange, access, identity)

    def _recalled(self, credential: Credential) -> Identity | None:
        return None if self._authentication is None else self._authentication.recall(credential)

    def _credential(self, exchange: Exchange, access: Access) -> Credential:
        if access.scope is Scope.ADMIN:
            return Credential(read_token(exchange) or b"")
        return self._reader.read(exchange, may_be_cookie=access.is_view and exchange.method in _READING)

    def _admit_apart(self, exchange: Exchange, access: Access) -> bool:
        """Where clients need not authenticate, and where they must be more than clients."""
        if access.scope is not Scope.ADMIN:
            authentication = self._authentication
            if authentication is not None and not authentication.directory.is_confirmed:
                return False
            self._let_in(exchange, access, EVERYBODY)
            return True
        return self._admit_operator(exchange, access)

    def _admit_operator(self, exchange: Exchange, access: Access) -> bool:
        if access.is_metrics and self._are_metrics_open:
            return True
        if not access.is_metrics and not self._operator_keys:
            raise not_found()
        try:
            token = read_token(exchange)
            if token is None:
                raise Unauthenticated("missing")
            if _is_one_of(token, self._metrics_keys if access.is_metrics else self._operator_keys):
                exchange.identity = OPERATOR
                return True
            if self._authentication is None or not self._authentication.is_key(token):
                raise Unauthenticated("wrong")
            identity = self._authentication.recall(Credential(token))
        except Unauthenticated as error:
            raise self._refused(error) from None
        if identity is None:
            return False
        self._let_in(exchange, access, identity)
        return True

    def _let_in(self, exchange: Exchange, access: Access, identity: Identity) -> None:
        if identity.job_id is not None:
            if not access.is_view:
                raise forbidden("A view token is good for reading its job, and for nothing else.")
            if identity.job_id != exchange.job_id:
                raise not_found()
        if access.scope not in identity.scopes:
            raise forbidden(f"This takes the scope {access.scope}, which the credential does not have.")
        if access.scope is Scope.SUBMIT and not self._may_submit(identity.tenant):
            raise tenant_suspended()
        exchange.identity = identity
        exchange.tenant = identity.tenant

    def _may_submit(self, tenant: str) -> bool:
        return self._authentication is None or self._authentication.directory.tenant(tenant).may_submit

    def _refused(self, error: Unauthenticated) -> Exception:
        self._metrics.count("unauthenticated", reason=error.reason)
        return unauthenticated()


def _secrets(*settings: SecretStr | None) -> list[bytes]:
    return [secret.get_secret_value().encode() for secret in settings if secret is not None]


def _is_one_of(token: bytes, secrets: list[bytes]) -> bool:
    is_known = False
    for secret in secrets:
        is_known |= hmac.compare_digest(token, secret)
    return is_known
