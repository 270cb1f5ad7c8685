"""API keys: found by their id, compared by their digest, and dead within a second of being revoked."""

import hmac
import math
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from coatcheck.admission.directory import Directory
from coatcheck.admission.identity import Identity, Unauthenticated
from coatcheck.admission.record_cache import NOT_READ, NotRead, RecordCache
from coatcheck.core import limits
from coatcheck.core.api_keys import digest_of, key_id_of
from coatcheck.core.job import InstantMs
from coatcheck.core.scopes import Scope
from coatcheck.store.clock import Clock
from coatcheck.store.controls import ControlStore

_NO_DIGEST: Final = digest_of(b"")
_SCOPES: Final[Mapping[str, Scope]] = {scope.value: scope for scope in Scope}


class _KnownKey(Struct, frozen=True):
    """A key of the store, what it makes of its bearer, and until when, if the controls do not change before."""

    key_id: str
    digest: str
    identity: Identity
    good_until: float


class KeyRing:
    """The keys of all tenants. `recall` decides from memory, `find` asks the store where it has to."""

    def __init__(self, store: ControlStore, directory: Directory, clock: Clock) -> None:
        self._store = store
        self._directory = directory
        self._clock = clock
        self._keys: RecordCache[_KnownKey] = RecordCache(self._read, directory)
        self._used: dict[str, InstantMs] = {}

    def recall(self, key: bytes) -> Identity | None:
        """Whose key this is; None if the store must be asked.

        Raises:
            Unauthenticated: it is no key, none of ours, or not good any more.
        """
        known = self._keys.recall(_id_in(key))
        return None if known is NOT_READ else self._verified(key, known)

    async def find(self, key: bytes) -> Identity:
        """Whose key this is.

        Raises:
            Unauthenticated, StoreUnavailable.
        """
        return self._verified(key, await self._keys.find(_id_in(key)))

    def recall_holder(self, key_id: str) -> Identity | NotRead | None:
        """Whom a key that is good now belongs to, by its id alone."""
        known = self._keys.recall(key_id)
        return NOT_READ if known is NOT_READ else self._holder(known)

    async def find_holder(self, key_id: str) -> Identity | None:
        """The same, read where it is not known.

        Raises:
            StoreUnavailable: it could not be read.
        """
        return self._holder(await self._keys.find(key_id))

    async def write_uses(self) -> None:
        """Store when keys were last used, as gathered since the last time.

        Raises:
            StoreUnavailable: it is kept for the next time.
        """
        if not self._used:
            return
        used, self._used = self._used, {}
        try:
            await self._store.touch_keys(used)
        except BaseException:
            self._used = used | self._used
            raise

    async def _read(self, key_id: str) -> _KnownKey | None:
        record = await self._store.find_key(key_id)
        if record is None:
            return None
        scopes = frozenset(_SCOPES[scope] for scope in record.scopes if scope in _SCOPES)
        identity = Identity(record.tenant, scopes, f"key:{key_id}", key_id, record.expires_at)
        is_standing = record.revoked_at is None and self._directory.tenant(record.tenant).may_read
        expires_at = math.inf if record.expires_at is None else record.expires_at
        return _KnownKey(key_id, record.digest, identity, expires_at if is_standing else -math.inf)

    def _verified(self, key: bytes, known: _KnownKey | None) -> Identity:
        # The same steps for every key, so that a refusal does not tell by its time what was wrong.
        digest, now = digest_of(key), self._clock.now()
        is_right = hmac.compare_digest(digest, _NO_DIGEST if known is None else known.digest)
        if known is None:
            raise Unauthenticated("unknown")
        if not is_right:
            raise Unauthenticated("wrong")
        if known.good_until <= now:
            raise Unauthenticated("ended")
        if known.key_id in self._used or len(self._used) < limits.CREDENTIALS_REMEMBERED_MAX:
            self._used[known.key_id] = now
        return known.identity

    def _holder(self, known: _KnownKey | None) -> Identity | None:
        return known.identity if known is not None and known.good_until > self._clock.now() else None


def _id_in(key: bytes) -> str:
    key_id = key_id_of(key)
    if key_id is None:
        raise Unauthenticated("malformed")
    return key_id
