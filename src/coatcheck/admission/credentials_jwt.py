"""Tokens of an identity provider (JWT, RFC 7519): signed by a key of its key set, meant for us, and still good.

Verifying a signature takes longer than all the rest of a request, so what was found is remembered by the token's
digest until the token ends or the issuer's keys change.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jwt
from msgspec import Struct

from coatcheck.admission.identity import Identity, ProviderUnavailable, Unauthenticated
from coatcheck.admission.issuer_keys import IssuerKeys
from coatcheck.core import limits
from coatcheck.core.job import InstantMs
from coatcheck.core.scopes import CLIENT_SCOPES
from coatcheck.store.clock import Clock

_TENANT: Final = re.compile(f"[!-~]{{1,{limits.TENANT_CHARS_MAX}}}")
_ACTOR_CHARS_MAX: Final = 200
# What tokens say of time is compared with our clock, not with the library's.
_OPTIONS: Final[Any] = {
    "require": ["exp", "iss", "aud"],
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_jti": False,
    "verify_sub": False,
}


class TokenRules(Struct, frozen=True):
    """What a token must say: from whom, for whom, how it is signed, and where the tenant and the scopes stand."""

    issuer: str
    audience: Sequence[str]
    algorithms: Sequence[str]
    tenant_claim: str
    scope_claim: str
    leeway_s: float


class TokenReader:
    """Reads tokens. Whether their tenant is one of ours is another question."""

    def __init__(self, rules: TokenRules, keys: IssuerKeys, clock: Clock) -> None:
        self._rules = rules
        self._keys = keys
        self._clock = clock
        self._read: dict[bytes, Identity] = {}
        keys.on_change(self._read.clear)

    def recall(self, token: bytes) -> Identity | None:
        """Whose token this is; None if it was not read before.

        Raises:
            Unauthenticated: it has ended.
        """
        identity = self._read.get(_digest(token))
        if identity is not None and identity.has_ended(self._clock.now()):
            raise Unauthenticated("ended")
        return identity

    async def find(self, token: bytes) -> Identity:
        """Whose token this is.

        Raises:
            Unauthenticated: it is none, or not good.
            ProviderUnavailable: that cannot be told now.
        """
        identity = self.recall(token)
        if identity is None:
            identity = self._identity(self._claims(token, await self._key(token)))
            if len(self._read) >= limits.CREDENTIALS_REMEMBERED_MAX:
                del self._read[next(iter(self._read))]
            self._read[_digest(token)] = identity
        return identity

    async def start(self) -> None:
        """Begin to follow the issuer's keys.

        Raises:
            KeySetUnavailable: as `IssuerKeys.start`.
        """
        await self._keys.start()

    async def stop(self) -> None:
        """Follow them no more."""
        await self._keys.stop()

    async def _key(self, token: bytes) -> jwt.PyJWK:
        """The key that the token says it is signed with."""
        try:
            header = jwt.get_unverified_header(token)
        except Exception:
            # Whatever a parser makes of hostile bytes, they are no token.
            raise Unauthenticated("malformed") from None
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or not isinstance(kid, str | None) or "crit" in header:
            raise Unauthenticated("malformed")
        if algorithm not in self._rules.algorithms:
            raise Unauthenticated("wrong")
        if self._keys.find(kid, algorithm) is None:
            await self._keys.look_again()
        key = self._keys.find(kid, algorithm)
        if key is None:
            raise Unauthenticated("unknown") if self._keys.are_known else ProviderUnavailable()
        return key

    def _claims(self, token: bytes, key: jwt.PyJWK) -> Mapping[str, Any]:
        rules = self._rules
        try:
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                issuer=rules.issuer,
                audience=list(rules.audience),
                options=_OPTIONS,
            )
        except Exception:
            # Whatever a verifier makes of claims that anybody may have written, the token is not good.
            raise Unauthenticated("wrong") from None
        return claims

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        leeway_ms = round(self._rules.leeway_s * 1000)
        expires_at, begins_at = _instant(claims.get("exp")), _instant(claims.get("nbf", 0))
        tenant = claims.get(self._rules.tenant_claim)
        if expires_at is None or begins_at is None or not isinstance(tenant, str) or not _TENANT.fullmatch(tenant):
            raise Unauthenticated("wrong")
        now = self._clock.now()
        if expires_at + leeway_ms <= now or begins_at - leeway_ms > now:
            raise Unauthenticated("ended")
        words = _words(claims.get(self._rules.scope_claim))
        scopes = frozenset(scope for scope in CLIENT_SCOPES if scope.value in words)
        actor = f"jwt:{claims.get('sub', tenant)}"[:_ACTOR_CHARS_MAX]
        return Identity(tenant, scopes, actor, expires_at=expires_at + leeway_ms)


def _words(claim: Any) -> frozenset[str]:
    """The scopes of a claim: a text with spaces between them (RFC 8693), or a list."""
    if isinstance(claim, str):
        return frozenset(claim.split())
    return frozenset(word for word in claim if isinstance(word, str)) if isinstance(claim, list) else frozenset()


def _instant(seconds: Any) -> InstantMs | None:
    """A NumericDate; None where it is none."""
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return round(seconds * 1000) if is_number and 0 <= seconds <= limits.INSTANT_MS_MAX / 1000 else None


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
