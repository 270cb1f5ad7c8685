"""View tokens: short-lived, signed, good for reading one job, and worth no more than the credential that made them.

A token is `cct_`, its claims as JSON in base64url, a dot, and the HMAC-SHA256 of all before the dot. Nothing of it is
kept: whoever holds a signing key can check it.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from coatcheck.admission.identity import Identity, Unauthenticated
from coatcheck.core.job import InstantMs
from coatcheck.core.scopes import Scope
from coatcheck.store.clock import Clock

TOKEN_PREFIX: Final = b"cct_"

_TOKEN: Final = re.compile(rb"(cct_([A-Za-z0-9_-]{16,2048}))\.([A-Za-z0-9_-]{43})")
_READ: Final = frozenset({Scope.READ})


class _Claims(Struct, frozen=True, array_like=True):
    """What a token says. `key_id` is the API key it was made with, if it was one."""

    job_id: str
    tenant: str
    expires_at: InstantMs
    key_id: str | None


class ViewTokens:
    """Makes and checks view tokens.

    Args:
        keys: the first one signs, each of them verifies.
    """

    def __init__(self, keys: Sequence[bytes], clock: Clock) -> None:
        self._keys = keys
        self._clock = clock

    def make(self, maker: Identity, job_id: str, lifetime_s: int) -> tuple[str, InstantMs]:
        """A token for one job, and when it ends: never later than the credential it is made with."""
        ends_at = self._clock.now() + lifetime_s * 1000
        expires_at = ends_at if maker.expires_at is None else min(ends_at, maker.expires_at)
        claims = msgspec.json.encode(_Claims(job_id, maker.tenant, expires_at, maker.key_id))
        signed = TOKEN_PREFIX + _encoded(claims)
        return (signed + b"." + _signature(self._keys[0], signed)).decode("ascii"), expires_at

    def read(self, token: bytes) -> Identity:
        """What a token lets its bearer do. Whether its maker's credential still stands is another question.

        Raises:
            Unauthenticated: it is none of ours, or has ended.
        """
        match = _TOKEN.fullmatch(token)
        if match is None:
            raise Unauthenticated("malformed")
        signed, encoded, signature = match.groups()
        if not any(hmac.compare_digest(signature, _signature(key, signed)) for key in self._keys):
            raise Unauthenticated("wrong")
        claims = _decoded(encoded)
        identity = Identity(claims.tenant, _READ, "view", claims.key_id, claims.expires_at, claims.job_id)
        if identity.has_ended(self._clock.now()):
            raise Unauthenticated("ended")
        return identity


def _signature(key: bytes, signed: bytes) -> bytes:
    return _encoded(hmac.digest(key, signed, "sha256"))


def _encoded(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def _decoded(encoded: bytes) -> _Claims:
    """What stands in a token whose signature is right. A later version may have signed something else."""
    try:
        raw = base64.urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
        return msgspec.json.decode(raw, type=_Claims)
    except (binascii.Error, msgspec.MsgspecError):
        raise Unauthenticated("malformed") from None
