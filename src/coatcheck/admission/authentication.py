"""Every way to show who one is, in one place: from a credential to an identity, or to a plain no.

`recall` decides from memory, which is what happens at nearly every request; where it cannot, `find` asks the store or
the issuer. Both answer alike.
"""

from typing import Final, Protocol

from coatcheck.admission.credentials_keys import KeyRing
from coatcheck.admission.credentials_views import TOKEN_PREFIX, ViewTokens
from coatcheck.admission.directory import Directory
from coatcheck.admission.identity import Credential, Identity, Unauthenticated
from coatcheck.admission.record_cache import NOT_READ, RecordCache
from coatcheck.core.api_keys import KEY_PREFIX
from coatcheck.core.scopes import Scope
from coatcheck.observe.rounds import Rounds
from coatcheck.store.clock import Clock
from coatcheck.store.controls import ControlStore, Tenant

USES_EVERY_S: Final = 3.0
_KEY_PREFIX: Final = KEY_PREFIX.encode()


class Tokens(Protocol):
    """Reads an issuer's tokens."""

    def recall(self, token: bytes) -> Identity | None: ...

    async def find(self, token: bytes) -> Identity: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Ways:
    """The ways that the settings allow.

    Args:
        keys: whether API keys are taken.
        tokens: reads an issuer's tokens, if those are taken.
        gateway_scopes: what a client may do whom the gateway names.
        views: makes and reads view tokens, if there is a key to sign them with.
    """

    def __init__(
        self,
        *,
        keys: bool = False,
        tokens: Tokens | None = None,
        gateway_scopes: frozenset[Scope] = frozenset(),
        views: ViewTokens | None = None,
    ) -> None:
        self.keys = keys
        self.tokens = tokens
        self.gateway_scopes = gateway_scopes
        self.views = views


class Authentication:
    """Who is it? Good within a second of what the store says, by the directory's promise."""

    def __init__(self, store: ControlStore, directory: Directory, clock: Clock, ways: Ways) -> None:
        self.directory = directory
        self.ways = ways
        self._clock = clock
        self._ring = KeyRing(store, directory, clock)
        self._tenants: RecordCache[Tenant] = RecordCache(store.find_tenant, directory)
        self._rounds = Rounds("key-uses", self._turn)

    async def start(self) -> None:
        """Begin to write when keys were used, and to follow the issuer's keys.

        Raises:
            KeySetUnavailable: they are in a file of this machine that cannot be used.
        """
        if self.ways.tokens is not None:
            await self.ways.tokens.start()
        self._rounds.start()

    async def stop(self) -> None:
        """Write what is left to be written, and no more."""
        if self.ways.tokens is not None:
            await self.ways.tokens.stop()
        await self._rounds.stop()
        await self._rounds.run_once()

    def is_key(self, token: bytes) -> bool:
        """Whether the token is to be taken for an API key."""
        return self.ways.keys and token.startswith(_KEY_PREFIX)

    def recall(self, credential: Credential) -> Identity | None:
        """Whose credential this is; None if `find` has to be asked.

        Raises:
            Unauthenticated: it is not good.
        """
        if not self.directory.is_confirmed:
            return None
        if self.is_key(credential.token):
            return self._ring.recall(credential.token)
        identity = self._recall_apart(credential)
        return None if identity is None else self._recall_standing(identity)

    async def find(self, credential: Credential) -> Identity:
        """Whose credential this is.

        Raises:
            Unauthenticated: it is not good.
            StoreUnavailable, ProviderUnavailable: that cannot be told now.
        """
        await self.directory.confirmed()
        if self.is_key(credential.token):
            return await self._ring.find(credential.token)
        identity = self._recall_apart(credential)
        if identity is None and self.ways.tokens is not None:
            identity = await self.ways.tokens.find(credential.token)
        if identity is None or not await self.is_standing(identity):
            raise Unauthenticated("ended")
        return identity

    async def is_standing(self, identity: Identity) -> bool:
        """Whether who came with this identity could come with it again.

        Raises:
            StoreUnavailable: that cannot be told now.
        """
        await self.directory.confirmed()
        if identity.has_ended(self._clock.now()) or not self.directory.tenant(identity.tenant).may_read:
            return False
        if identity.key_id is not None:
            return await self._ring.find_holder(identity.key_id) is not None
        return await self._tenants.find(identity.tenant) is not None

    def _recall_apart(self, credential: Credential) -> Identity | None:
        """The identity of a credential that is no API key, before it is asked what became of its tenant and maker."""
        name, token = credential.gateway_name, credential.token
        if name is not None:
            return Identity(name, self.ways.gateway_scopes, f"gateway:{name}")
        if self.ways.views is not None and token.startswith(TOKEN_PREFIX):
            return self.ways.views.read(token)
        if self.ways.tokens is None:
            raise Unauthenticated("malformed")
        return self.ways.tokens.recall(token)

    def _recall_standing(self, identity: Identity) -> Identity | None:
        """The identity, if it is known to stand; None if that must be asked."""
        key_id, tenant = identity.key_id, identity.tenant
        origin = self._tenants.recall(tenant) if key_id is None else self._ring.recall_holder(key_id)
        if origin is NOT_READ:
            return None
        if origin is None or not self.directory.tenant(identity.tenant).may_read:
            raise Unauthenticated("ended")
        return identity

    async def _turn(self) -> float:
        await self._ring.write_uses()
        return USES_EVERY_S
