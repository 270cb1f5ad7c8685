"""The public keys of an issuer of tokens: fetched in advance, and those last seen stay good while it is away."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import jwt

from coatcheck.admission.key_sets import KeySetSource, KeySetUnavailable
from coatcheck.core import limits
from coatcheck.observe.logs import get_logger
from coatcheck.observe.rounds import Rounds, jittered
from coatcheck.store.clock import Clock

AGAIN_S: Final = 10.0
_RSA_BITS_MIN: Final = 2048
# What a key must be to be used with an algorithm. There is no place here for a secret that both sides know.
_FITTING: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", frozenset[str]())),
    "ES256": ("EC", frozenset({"P-256"})),
    "ES384": ("EC", frozenset({"P-384"})),
    "ES512": ("EC", frozenset({"P-521"})),
    "EdDSA": ("OKP", frozenset({"Ed25519", "Ed448"})),
}

_log = get_logger(__name__)


class _IssuerKey(NamedTuple):
    kid: str | None
    algorithm: str
    key: jwt.PyJWK


class IssuerKeys:
    """The keys as last seen.

    Args:
        source: where they come from.
        algorithms: those that tokens may be signed with.
        refresh_s: how often they are fetched again.
    """

    def __init__(self, source: KeySetSource, clock: Clock, algorithms: Sequence[str], refresh_s: float) -> None:
        self._source = source
        self._clock = clock
        self._algorithms = algorithms
        self._refresh_s = refresh_s
        self._keys: Sequence[_IssuerKey] = ()
        self._raw: bytes | None = None
        self._tried_s = float("-inf")
        self._looking = asyncio.Lock()
        self._rounds = Rounds("issuer-keys", self._turn, (KeySetUnavailable,))
        self._watchers: list[Callable[[], None]] = []

    @property
    def are_known(self) -> bool:
        """Whether they were seen at least once."""
        return bool(self._keys)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever other keys were seen."""
        self._watchers.append(callback)

    async def start(self) -> None:
        """Fetch them, and go on to do so now and then. A provider that is away is no reason not to start.

        Raises:
            KeySetUnavailable: the source is local, and cannot be used.
        """
        if self._source.is_local:
            await self.refresh()
        else:
            await self._rounds.run_once()
        self._rounds.start()

    async def stop(self) -> None:
        """Fetch no more."""
        await self._rounds.stop()

    def find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        """The key of this id for this algorithm; without an id, the only one there is for the algorithm."""
        fitting = [one.key for one in self._keys if one.algorithm == algorithm and kid in (None, one.kid)]
        return fitting[0] if len(fitting) == 1 or (fitting and kid is not None) else None

    async def look_again(self) -> None:
        """Fetch them for a token whose key is not known, at most every AGAIN_S, whatever tokens come."""
        async with self._looking:
            if self._clock.monotonic_s() - self._tried_s < AGAIN_S:
                return
            try:
                await self.refresh()
            except KeySetUnavailable as error:
                _log.warning("issuer_keys_not_refreshed", reason=str(error))

    async def refresh(self) -> None:
        """Fetch them now.

        Raises:
            KeySetUnavailable: they cannot be had, or none of them can be used; those seen last stay good.
        """
        self._tried_s = self._clock.monotonic_s()
        raw = await self._source.fetch()
        if raw == self._raw:
            return
        self._keys = _usable_keys(raw, self._algorithms)
        self._raw = raw
        _log.info("issuer_keys", kids=[one.kid for one in self._keys])
        for callback in self._watchers:
            callback()

    async def _turn(self) -> float:
        await self.refresh()
        return jittered(self._refresh_s)


def _usable_keys(raw: bytes, algorithms: Sequence[str]) -> Sequence[_IssuerKey]:
    try:
        members = json.loads(raw)["keys"]
        usable = [key for member in members[: limits.KEY_SET_KEYS_MAX] for key in _keys_of(member, algorithms)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise KeySetUnavailable("what came is no JSON Web Key Set") from None
    if not usable:
        raise KeySetUnavailable(f"no key in the set can be used with {', '.join(algorithms)}")
    return usable


def _keys_of(member: Mapping[str, Any], algorithms: Sequence[str]) -> list[_IssuerKey]:
    """A member of the set, for each algorithm it may be used with."""
    if member.get("use", "sig") != "sig" or "verify" not in member.get("key_ops", ["verify"]):
        return []
    named = member.get("alg")
    fitting = [name for name in algorithms if named in (None, name) and _fits(member, name)]
    keys = (_IssuerKey(member.get("kid"), name, key) for name in fitting if (key := _parsed(member, name)) is not None)
    return list(keys)


def _fits(member: Mapping[str, Any], algorithm: str) -> bool:
    kind, curves = _FITTING[algorithm]
    return member.get("kty") == kind and (not curves or member.get("crv") in curves)


def _parsed(member: Mapping[str, Any], algorithm: str) -> jwt.PyJWK | None:
    try:
        key = jwt.PyJWK(dict(member), algorithm)
    except (jwt.PyJWTError, ValueError):
        return None
    size = getattr(key.key, "key_size", None)
    return None if member["kty"] == "RSA" and (size is None or size < _RSA_BITS_MIN) else key
