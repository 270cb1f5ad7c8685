"""A store and its model side by side: each verb goes to both, and every answer must be the one predicted."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from coatcheck.core.backoff import Backoff
from coatcheck.core.costs import SpendTotals
from coatcheck.core.job import JobRecord
from coatcheck.core.outcome import Outcome
from coatcheck.core.policy import Policies, Policy, Retention
from coatcheck.core.states import Status
from coatcheck.core.tenancy import Controls, TenantControl
from coatcheck.core.terms import Terms
from coatcheck.store.contract import Store
from coatcheck.store.errors import LeaseLost, StoreUnavailable
from coatcheck.store.records import (
    Beat,
    CancelAnswer,
    Claim,
    ClaimRequest,
    Finishing,
    Lease,
    Prunable,
    Redriving,
    Spending,
    Submission,
)
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.conformance.world import LEASE_S, StoreFactory
from coatcheck.testing.faults import FaultPoints
from coatcheck.testing.model import Model
from coatcheck.testing.model_changes import Changes
from coatcheck.testing.model_claims import Step, plan_claim
from coatcheck.testing.model_endings import rescue_window
from coatcheck.testing.model_moves import lateness
from coatcheck.testing.model_state import ModelJob, Place

from .watch import Watch

SWEEP = 500
STORES = 2
POLICIES = {
    "reports": Policy(
        backoff=Backoff(first_s=4.0, factor=3.0, max_s=30.0),
        queue_limit_s=900.0,
        retention=Retention(succeeded_s=4000, failed_s=90_000, cancelled_s=2000, result_s=1000, tombstone_s=50_000),
    ),
    "exports": Policy(
        backoff=Backoff(first_s=0.0),
        queue_limit_s=None,
        concurrency_max=2,
        processing_max_s=20.0,
        cost={"cost": 1.0},
        retention=Retention(succeeded_s=3000, failed_s=3000, cancelled_s=3000, result_s=9000, tombstone_s=1),
    ),
    "letters": Policy(queue_limit_s=60.0),
}
WEIGHTS = {"birch": 2.0, "cedar": 0.5}
TERMS = Terms(Controls(tenants={name: TenantControl(name, weight) for name, weight in WEIGHTS.items()}))


class Pair:
    """The stores of two processes over one database, and the model of it."""

    def __init__(self, factory: StoreFactory) -> None:
        self.clock = ManualClock()
        self.model = Model(POLICIES, WEIGHTS)
        self.leases: list[Lease] = []
        self._factory = factory
        self._changes = Changes(self.model)
        self._faults = FaultPoints()
        self._stores: list[Store] = []
        self._watches: list[Watch] = []

    async def open(self) -> None:
        for _ in range(STORES):
            self._stores.append(await self._factory.open_store(self.clock, True, self._faults))
            self._watches.append(Watch(LEASE_S))

    async def close(self) -> None:
        for store in self._stores:
            await store.close()
        self._stores.clear()
        self._watches.clear()

    @property
    def is_open(self) -> bool:
        return bool(self._stores)

    @property
    def now(self) -> int:
        return self.clock.now()

    def boundaries(self) -> Sequence[int]:
        """The instants to come at which something changes by itself."""
        state = self.model.state
        instants = {left.kept_until for left in state.tombstones.values()}
        instants |= {key.key.expires_at for key in state.keys.values()}
        for job in state.jobs.values():
            record, limit_s = job.record, POLICIES[job.record.operation].queue_limit_s
            latest = record.available_at + round((limit_s or 0.0) * 1000)
            known = (record.available_at, record.deadline_at, record.expires_at, record.result_expires_at)
            instants |= {latest, job.tombstone_until, *(at for at in known if at is not None)}
        return sorted(at for at in instants if at > self.now)

    def store(self, via: int) -> Store:
        """The store of one of the processes."""
        return self._stores[via]

    async def accept(self, via: int, submissions: Sequence[Submission]) -> None:
        """Hand in work, several pieces at once so that they meet in one commit; the first comes first."""
        answers = await asyncio.gather(*map(self.store(via).accept_job, submissions))
        for submission, answer in zip(submissions, answers, strict=True):
            same(answer, self._changes.accept(submission), "accept_job")

    async def fail_to_accept(self, via: int, submission: Submission) -> None:
        """The disk is full at the moment of the commit."""
        error = OSError("No space left on device")
        for nth in (1, 2):
            self._faults.raise_at("before-commit", error, self._faults.count("before-commit") + nth)
        try:
            answer = await self.store(via).accept_job(submission)
        except StoreUnavailable:
            return
        raise AssertionError(f"accepted on a full disk: {answer}")

    async def claim(self, via: int, request: ClaimRequest) -> None:
        """Claim; with several operations only where none of their jobs is late, since then the order is the store's."""
        state = self.model.state
        self._changes.promote(self.now)
        names = sorted(request.slots_by_operation)
        ready = [job for job in state.in_place(Place.READY) if job.record.operation in names]
        if any(lateness(state, job, self.now) for job in ready):
            request = replace(request, slots_by_operation={names[0]: request.slots})
        plans = [plan_claim(self.model, request, first, self.now) for first in sorted(request.slots_by_operation)]
        claims = await self.store(via).claim_ready(request, self.now)
        claimed = [claim.lease.job_id for claim in claims.claims]
        plan = next((plan for plan in plans if _ids(plan) == claimed), None)
        assert plan is not None, f"claimed {claimed}, not any of {[_ids(plan) for plan in plans]}"
        waiting = iter(claims.claims)
        for step in plan:
            if step.is_late:
                self._changes.expire([step.job], self.now, in_turn=True)
            else:
                self._take(next(waiting), step.job)
        same(claims.next_due_at, self.model.next_due_at(), "next_due_at")

    def _take(self, claim: Claim, job: ModelJob) -> None:
        attempt, is_alone = job.record.attempt + 1, job.is_alone
        record = self._changes.claim(job, claim.lease, self.now, self.clock.monotonic_s())
        ran_ms = self._ran_ms(job)
        predicted = Claim(Lease(job.record.id, attempt, claim.lease.token), record, job.payload, is_alone, ran_ms)
        same(claim, predicted, "claim")
        assert all(claim.lease.token != lease.token for lease in self.leases), "a token was given twice"
        self.leases.append(claim.lease)

    def _ran_ms(self, job: ModelJob) -> int:
        if POLICIES[job.record.operation].processing_max_s is None:
            return 0
        return sum(max((attempt.finished_at or 0) - attempt.started_at, 0) for attempt in job.attempts)

    async def beat(self, via: int, beats: Sequence[Beat]) -> None:
        answers = await self.store(via).extend_leases(beats, self.now)
        now_s = self.clock.monotonic_s()
        same(list(answers), [self._changes.beat(beat, self.now, now_s) for beat in beats], "extend_leases")

    async def finish(self, via: int, endings: Sequence[tuple[Lease, Outcome, float]]) -> None:
        """End attempts of different jobs at once, each with a jitter for its backoff."""
        await asyncio.gather(*(self._finish(via, *ending) for ending in endings))

    async def _finish(self, via: int, lease: Lease, outcome: Outcome, jitter: float) -> None:
        job = self.model.state.jobs.get(lease.job_id)
        policy = POLICIES["letters" if job is None else job.record.operation]
        finishing = Finishing(lease, outcome, policy, jitter)
        predicted = self._changes.finish(finishing, self.now)
        answer: JobRecord | None = None
        try:
            answer = (await self.store(via).finish_attempt(finishing, self.now)).job
        except LeaseLost:
            answer = None
        same(answer, predicted, "finish_attempt")

    async def record_effect(self, via: int, lease: Lease, name: str, value: bytes) -> None:
        predicted = self._changes.record_effect(lease, name, value)
        answer: bytes | None = None
        try:
            answer = await self.store(via).record_effect(lease, name, value, self.now)
        except LeaseLost:
            answer = None
        same(answer, predicted, "record_effect")
        await self.find_effect(via, lease, name)

    async def find_effect(self, via: int, lease: Lease, name: str) -> None:
        try:
            answer = (True, await self.store(via).find_effect(lease, name))
        except LeaseLost:
            answer = (False, None)
        same(answer, self.model.find_effect(lease, name), "find_effect")

    async def spend(self, via: int, spending: Spending) -> None:
        state = self.model.state
        job = state.holder(spending.lease)
        predicted = None if job is None else state.costs.spend(job.record, spending)
        answer: SpendTotals | None = None
        try:
            answer = await self.store(via).spend(spending)
        except LeaseLost:
            answer = None
        same(answer, predicted, "spend")

    async def cancel(self, via: int, job: tuple[str, str], reason: str | None) -> None:
        answer = await self.store(via).cancel_job(*job, reason, Policies(POLICIES), self.now)
        told = (answer.disposition, answer.job) if isinstance(answer, CancelAnswer) else answer
        same(told, self._changes.cancel(*job, reason, self.now), "cancel_job")

    async def erase(self, via: int, job: tuple[str, str]) -> None:
        answer = await self.store(via).erase_job(*job, self.now)
        same(answer, self._changes.erase(*job, self.now), "erase_job")

    async def redrive(self, via: int, redriving: Redriving) -> None:
        answer = await self.store(via).redrive_job(redriving)
        same(answer, self._changes.redrive(redriving), "redrive_job")

    async def promote(self, via: int) -> None:
        promotion = await self.store(via).promote_due(self.now, SWEEP)
        same(promotion.count, self._changes.promote(self.now), "promote_due")
        same(promotion.next_due_at, self.model.next_due_at(), "next_due_at")

    async def expire(self, via: int) -> None:
        count = await self.store(via).expire_overdue(Policies(POLICIES), self.now, SWEEP)
        waiting = [*self.model.state.in_place(Place.READY), *self.model.state.in_place(Place.SCHEDULED)]
        same(count, self._changes.expire(waiting, self.now), "expire_overdue")

    async def prune(self, via: int, what: Prunable) -> None:
        count = await self.store(via).prune_expired(what, self.now, SWEEP)
        same(count, self._changes.prune(what, self.now), f"prune_expired {what}")

    async def rescue(self, via: int) -> None:
        """Only leases that showed no life for a lease time are taken back, and all of those that the store can know."""
        now_s = self.clock.monotonic_s()
        running = self.model.state.in_place(Place.RUNNING)
        if self._factory.capabilities.has_lease_ends:
            silent = [job for job in running if now_s - job.alive_s >= LEASE_S]
        else:
            silent = self._watches[via].silent(running, now_s)
        count = await self.store(via).rescue_leases(Policies(POLICIES), self.now, SWEEP)
        rescued = [job for job in running if await self._settle_if_rescued(via, job)]
        assert count == len(rescued)
        assert all(now_s - job.alive_s >= LEASE_S for job in rescued), "a lease that is alive was taken back"
        assert {job.record.id for job in silent} == {job.record.id for job in rescued}

    async def _settle_if_rescued(self, via: int, job: ModelJob) -> bool:
        seen = await self.store(via).find_job(job.record.tenant, job.record.id, self.now)
        assert isinstance(seen, JobRecord), seen
        if seen.status is Status.RUNNING:
            return False
        if seen.status is Status.QUEUED:
            policy = POLICIES[job.record.operation]
            earliest, latest = rescue_window(policy, job.record.counted_attempts, self.now)
            assert earliest <= seen.available_at <= latest, seen
        self._changes.rescue(job, seen.available_at, self.now)
        return True


def _ids(plan: Sequence[Step]) -> list[str]:
    return [step.job.record.id for step in plan if not step.is_late]


def same(answer: object, predicted: object, verb: str) -> None:
    """The store must answer what the model predicts."""
    assert answer == predicted, f"{verb}:\n  store {answer}\n  model {predicted}"
