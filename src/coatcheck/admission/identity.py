"""Who a request speaks for, and what it may do."""

from typing import Final

from msgspec import Struct

from coatcheck.core.job import InstantMs
from coatcheck.core.scopes import CLIENT_SCOPES, Scope

DEFAULT_TENANT: Final = "default"


class Identity(Struct, frozen=True):
    """A tenant's client, or an operator.

    `actor` is what logs and the audit call it. `key_id`: the API key behind it, if there is one; the identity is worth
    no more than that key. `expires_at`: when the credential ends by itself. `job_id`: the one job it may read, where
    it is no more than a view of that job.
    """

    tenant: str
    scopes: frozenset[Scope]
    actor: str
    key_id: str | None = None
    expires_at: InstantMs | None = None
    job_id: str | None = None

    def has_ended(self, now: InstantMs) -> bool:
        """Whether its credential has expired."""
        return self.expires_at is not None and self.expires_at <= now


EVERYBODY: Final = Identity(DEFAULT_TENANT, CLIENT_SCOPES, "everybody")
"""Whoever comes where no authentication is configured."""


class Credential(Struct, frozen=True):
    """What a request shows: a token, or the name that a trusted gateway gives its caller."""

    token: bytes
    gateway_name: str | None = None


class Unauthenticated(Exception):
    """Nobody we know is speaking. `reason` is for metrics and never for the client: one word of a few."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ProviderUnavailable(Exception):
    """Whether this token is good cannot be told: the keys of its issuer were never seen and cannot be had now."""
