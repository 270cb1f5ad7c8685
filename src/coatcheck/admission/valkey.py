"""Shared token buckets in Valkey, or anything else that speaks Redis' protocol and runs its scripts."""

import asyncio
from collections.abc import Sequence
from importlib.resources import files

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from coatcheck.admission.shared_buckets import CALL_S_MAX, Ask, BucketsAway, Told
from coatcheck.core.quotas import LimitKey

_SCRIPT = files("coatcheck.admission").joinpath("take_tokens.lua").read_text("utf-8")


class Valkey:
    """The buckets of one app. All of them lie in one slot of a cluster, so that one call can reach them together.

    Args:
        url: redis:, rediss:, valkey:, valkeys: or unix:, as redis-py reads it; it may hold a password.
        app_name: keeps the buckets of several apps apart.
    """

    def __init__(self, url: str, app_name: str) -> None:
        self._prefix = f"{{coatcheck:{app_name}}}"
        self._redis: Redis = Redis.from_url(
            url.replace("valkey", "redis", 1) if url.startswith("valkey") else url,
            socket_timeout=CALL_S_MAX,
            socket_connect_timeout=CALL_S_MAX,
            # Whoever waits for an answer is better served by this process's own buckets than by a second try.
            retry=Retry(NoBackoff(), 0),
        )
        self._script = self._redis.register_script(_SCRIPT)

    async def take(self, asks: Sequence[Ask]) -> Sequence[Told]:
        keys = [self._key(draw.key) for ask in asks for draw in ask.draws]
        numbers = [number for ask in asks for number in _numbers(ask)]
        try:
            answer = [float(text) for text in await self._script(keys=keys, args=numbers)]
        except (RedisError, OSError, asyncio.IncompleteReadError) as error:
            raise BucketsAway(f"{type(error).__name__}: {error}") from error
        told, start = [], 0
        for ask in asks:
            end = start + 1 + len(ask.draws)
            told.append(Told(int(answer[start]), answer[start + 1 : end]))
            start = end
        return told

    async def close(self) -> None:
        await self._redis.aclose()

    def _key(self, key: LimitKey) -> str:
        name, tenant, operation = key
        # The tenant last: it alone may hold a colon.
        return f"{self._prefix}:{name}:{operation}:{tenant}"


def _numbers(ask: Ask) -> list[float]:
    sizes = [number for draw in ask.draws for number in draw.size]
    return [len(ask.draws), ask.wanted, *sizes]
