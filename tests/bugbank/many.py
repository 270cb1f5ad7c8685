"""Many claims at once, made in few commits."""

import asyncio
from typing import Any

from coatcheck.core.limits import CLAIM_BATCH_MAX
from coatcheck.store.records import Claim
from coatcheck.testing.conformance.world import World


async def many_claims(world: World, count: int, **changes: Any) -> list[Claim]:
    """Hand in this many jobs and claim them all. Nothing else may be waiting."""
    await asyncio.gather(*(world.accept(**changes) for _ in range(count)))
    claims: list[Claim] = []
    while len(claims) < count:
        claims += await world.claim(min(count - len(claims), CLAIM_BATCH_MAX))
    return claims
