"""Work for a PostgreSQL store outside the shipped suite: stores, submissions, and one turn of a worker."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from msgspec import structs

from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.core.ids import RANDOM_BITS, IdSequence
from coatcheck.core.outcome import ResultBody, Succeeded
from coatcheck.core.policy import DEFAULT_POLICY, Policies
from coatcheck.store.clock import SystemClock
from coatcheck.store.records import Accepted, Claim, ClaimRequest, Finishing, Submission
from coatcheck.stores.postgres.config import PostgresConfig
from coatcheck.stores.postgres.store import PostgresStore

TENANT = "acme"
OPERATION = "reports"
POLICIES = Policies({OPERATION: DEFAULT_POLICY})
DONE = Succeeded(ResultBody("application/json", b"{}"))

clock = SystemClock()
_ids = IdSequence()


def submission(**changes: Any) -> Submission:
    """Valid work, handed in now."""
    now = clock.now()
    job_id = _ids.next_id(clock.now_us(), secrets.randbits(RANDOM_BITS))
    plain = Submission(job_id, TENANT, OPERATION, "1", b"{}", now, now, None, 5, 5, "correlation")
    return structs.replace(plain, **changes)


def config(dsn: str, **changes: Any) -> PostgresConfig:
    """A store called `shop` that listens for hints."""
    return replace(PostgresConfig(dsn, "shop", listen_dsn=dsn), **changes)


@asynccontextmanager
async def opened(dsn: str, fault_point: FaultPoint = no_fault, **changes: Any) -> AsyncIterator[PostgresStore]:
    """A store that is closed in the end."""
    store = PostgresStore(config(dsn, **changes), fault_point=fault_point)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def accept(store: PostgresStore, **changes: Any) -> str:
    """Hand in work that must be accepted; returns its id."""
    disposition = await store.accept_job(submission(**changes))
    assert isinstance(disposition, Accepted), disposition
    return disposition.job.id


async def claim(store: PostgresStore, slots: int = 1, worker: str = "worker") -> list[Claim]:
    """One claim, and the turns as it leaves them."""
    request = ClaimRequest(worker, slots, {OPERATION: slots}, POLICIES.by_operation)
    claims = (await store.claim_ready(request, clock.now())).claims
    await store.turns_kept()
    return list(claims)


def finishing(claim: Claim) -> Finishing:
    """The end of an attempt that did what it should."""
    return Finishing(claim.lease, DONE, DEFAULT_POLICY, 0.5)
