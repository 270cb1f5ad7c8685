"""Nobody reaches a resource but past here: who it is, and whether the scope it takes is theirs."""

from typing import Final

from coatcheck.admission.identity import EVERYBODY, Credential, Identity, ProviderUnavailable, Unauthenticated
from coatcheck.core.problems import Refused
from coatcheck.core.scopes import Scope
from coatcheck.http.access import Access
from coatcheck.http.exchange import Exchange
from coatcheck.http.identity import CredentialReader, read_token
from coatcheck.http.refusals import forbidden, not_found, provider_unavailable, unauthenticated
from coatcheck.http.services import HttpServices
from coatcheck.http.shared_secrets import SharedSecrets, are_metrics_open, metrics_secrets

OPERATOR: Final = Identity("", frozenset({Scope.ADMIN}), "operator")
"""Whoever has the operators' own key."""

_READING: Final = frozenset({"GET", "HEAD"})


class Doorkeeper:
    """Lets requests in, each with its identity, or refuses them in words that tell nobody what was wrong."""

    def __init__(self, services: HttpServices) -> None:
        settings = services.settings
        if settings.has_auth and services.authentication is None:
            raise RuntimeError("authentication is configured and nobody is there to do it")
        self._authentication = services.authentication
        self._metrics = services.metrics
        self._asks_clients = settings.has_auth
        self._reader = CredentialReader(settings)
        self._operator_secrets = SharedSecrets(settings.operator_key)
        self._metrics_secrets = metrics_secrets(settings)
        self._are_metrics_open = are_metrics_open(settings)

    def admit(self, exchange: Exchange, access: Access) -> bool:
        """Let the request in if that can be told at once. False: `admit_later` has to ask first.

        Raises:
            Refused: `unauthenticated`, `forbidden` or `not-found`.
        """
        if self._is_open(access):
            return True
        self._note_controls(exchange)
        try:
            if access.scope is Scope.ADMIN and self._is_operator(exchange, access):
                exchange.identity = OPERATOR
                return True
            credential = self._credential(exchange, access)
            identity = None if self._authentication is None else self._authentication.recall(credential)
        except Unauthenticated as error:
            raise self._refused(error) from None
        if identity is None:
            return False
        _let_in(exchange, access, identity)
        return True

    async def admit_later(self, exchange: Exchange, access: Access) -> None:
        """Let the request in, after asking the store or an identity provider.

        Raises:
            Refused: as `admit`, and `identity-provider-unavailable`.
            StoreUnavailable: that cannot be told now.
        """
        self._note_controls(exchange)
        try:
            if self._authentication is None:
                raise Unauthenticated("unknown")
            identity = await self._authentication.find(self._credential(exchange, access))
        except Unauthenticated as error:
            raise self._refused(error) from None
        except ProviderUnavailable:
            raise provider_unavailable() from None
        _let_in(exchange, access, identity)

    async def admit_again(self, exchange: Exchange) -> None:
        """As `coatcheck.http.exchange.Gatekeeper` says. What the settings say stays good while the process runs."""
        identity = exchange.identity
        if self._authentication is None or identity is EVERYBODY or identity is OPERATOR:
            return
        if not await self._authentication.is_standing(identity):
            raise self._refused(Unauthenticated("ended"))

    def _note_controls(self, exchange: Exchange) -> None:
        """Before they are asked: what is changed from here on may not have been seen."""
        if self._authentication is not None:
            exchange.controls_version = self._authentication.directory.controls.version

    def _is_open(self, access: Access) -> bool:
        if access.is_metrics:
            return self._are_metrics_open
        return access.scope is None or (access.scope is not Scope.ADMIN and not self._asks_clients)

    def _is_operator(self, exchange: Exchange, access: Access) -> bool:
        if not access.is_metrics and not self._operator_secrets:
            raise not_found()
        token = read_token(exchange.headers)
        secrets = self._metrics_secrets if access.is_metrics else self._operator_secrets
        return token is not None and secrets.have(token)

    def _credential(self, exchange: Exchange, access: Access) -> Credential:
        if access.scope is not Scope.ADMIN:
            return self._reader.read(exchange, may_be_cookie=access.is_view and exchange.method in _READING)
        token = read_token(exchange.headers)
        if token is None:
            raise Unauthenticated("missing")
        return Credential(token)

    def _refused(self, error: Unauthenticated) -> Refused:
        self._metrics.count("unauthenticated", reason=error.reason)
        return unauthenticated()


def _let_in(exchange: Exchange, access: Access, identity: Identity) -> None:
    if identity.job_id is not None:
        if not access.is_view:
            raise forbidden("A view token is good for reading its job, and for nothing else.")
        if identity.job_id != exchange.job_id:
            raise not_found()
    if access.scope not in identity.scopes:
        raise forbidden(f"This takes the scope {access.scope}, which the credential does not have.")
    exchange.identity = identity
    exchange.tenant = identity.tenant
