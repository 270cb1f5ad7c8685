"""Budgets: exact in the acceptance commit, charged once, given back for what never started, read window by window."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from coatcheck.core.costs import ALL_OPERATIONS, BUDGET, Cap, Charge, JobCost, OverBudget, Window, window_of
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.job import JobRecord
from coatcheck.core.outcome import Outcome, Released
from coatcheck.core.policy import Policies
from coatcheck.core.quotas import ALL, EACH, LimitBook
from coatcheck.core.states import Status
from coatcheck.core.tenancy import Revocation
from coatcheck.core.terms import Terms
from coatcheck.store.costs import SpendingRow
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import Accepted, Disposition, KeyConflict, Redriving, Replayed, Spending
from coatcheck.testing.conformance.inbox import Inbox, InboxSuite
from coatcheck.testing.conformance.revoking import revoke
from coatcheck.testing.conformance.world import (
    BROKEN,
    DONE,
    FLAKY,
    OPERATION,
    OTHER_OPERATION,
    POLICY,
    TENANT,
    Suite,
    World,
    cancel,
    key_of,
)

DAY_S = 24 * 3600
IN_ALL = ALL_OPERATIONS


def charge(world: World, units: int, most: int | None = None, operation: str = IN_ALL, kind: str = "cost") -> Charge:
    """A charge under a budget of one day."""
    caps = () if most is None else (Cap(operation, most),)
    return Charge(kind, units, window_of(world.now, DAY_S), caps)


async def _hand_in(world: World, *charges: Charge, **changes: Any) -> Disposition:
    world.policies[OPERATION] = world.policies[OTHER_OPERATION] = replace(POLICY, cost={"cost": 1.0})
    return await world.store.accept_job(world.submission(charges=charges, **changes))


async def _accepted(world: World, units: int, **changes: Any) -> JobRecord:
    disposition = await _hand_in(world, charge(world, units), **changes)
    assert isinstance(disposition, Accepted)
    return disposition.job


async def _used(world: World, tenant: str = TENANT) -> int:
    """What the tenant's jobs cost, all together."""
    return sum(row.charged + row.spent for row in await world.store.list_spending(tenant, 100))


class TestBudgets(Suite):
    """What is charged never exceeds a budget."""

    async def test_a_budget_can_be_used_up_and_not_passed(self, world: World) -> None:
        assert isinstance(await _hand_in(world, charge(world, 6, 10)), Accepted)
        assert isinstance(await _hand_in(world, charge(world, 5, 10)), OverBudget)
        assert isinstance(await _hand_in(world, charge(world, 4, 10)), Accepted)
        too_much = charge(world, 1, 10)
        assert await _hand_in(world, too_much) == OverBudget(too_much, too_much.caps[0], 10)
        assert isinstance(await _hand_in(world, charge(world, 0, 10)), Accepted)
        assert await _used(world) == 10

    async def test_none_is_allowed_where_the_budget_is_nothing(self, world: World) -> None:
        assert isinstance(await _hand_in(world, charge(world, 1, 0)), OverBudget)
        assert isinstance(await _hand_in(world, charge(world, 0, 0)), Accepted)

    async def test_what_is_refused_leaves_nothing(self, world: World) -> None:
        before = await world.factory.count_rows()
        await _hand_in(world, charge(world, 11, 10), key=key_of(world), deadline_at=world.now + 1000)
        assert await world.factory.count_rows() == before
        assert isinstance(await _hand_in(world, charge(world, 10, 10), key=key_of(world)), Accepted)

    async def test_a_charge_of_several_kinds_is_made_whole_or_not_at_all(self, world: World) -> None:
        both = (charge(world, 1, 10), charge(world, 11, 10, kind="tokens"))
        assert isinstance(await _hand_in(world, *both), OverBudget)
        assert await _used(world) == 0
        disposition = await _hand_in(world, charge(world, 1, 10), charge(world, 10, 10, kind="tokens"))
        assert isinstance(disposition, Accepted)
        costs = await world.store.list_job_costs(disposition.job.id)
        assert costs == [JobCost("cost", 1, 0), JobCost("tokens", 10, 0)]

    async def test_a_tenant_s_budget_is_for_all_operations_and_an_operation_s_for_itself(self, world: World) -> None:
        await _accepted(world, 7)
        await _accepted(world, 2, operation=OTHER_OPERATION)
        assert isinstance(await _hand_in(world, charge(world, 2, 10)), OverBudget)
        assert isinstance(await _hand_in(world, charge(world, 3, 9, OPERATION)), OverBudget)
        assert isinstance(await _hand_in(world, charge(world, 2, 9, OPERATION)), Accepted)

    async def test_tenants_kinds_and_windows_keep_apart(self, world: World) -> None:
        await _accepted(world, 10)
        assert isinstance(await _hand_in(world, charge(world, 10, 10), tenant="other"), Accepted)
        assert isinstance(await _hand_in(world, charge(world, 10, 10, kind="tokens")), Accepted)
        hourly = replace_window(charge(world, 10, 10), window_of(world.now, 3600))
        assert isinstance(await _hand_in(world, hourly), Accepted)
        world.clock.advance((window_of(world.now, DAY_S).ends_at - world.now - 1) / 1000)
        assert isinstance(await _hand_in(world, charge(world, 1, 10)), OverBudget)
        world.clock.advance(0.001)
        assert isinstance(await _hand_in(world, charge(world, 10, 10)), Accepted)

    async def test_what_jobs_spend_counts_as_what_they_are_charged(self, world: World) -> None:
        job = await _accepted(world, 4)
        claim = await world.restart(job.id)
        await world.store.spend(Spending(claim.lease, 1, "cost", 5, window_of(world.now, DAY_S)))
        assert isinstance(await _hand_in(world, charge(world, 2, 10)), OverBudget)
        assert isinstance(await _hand_in(world, charge(world, 1, 10)), Accepted)
        assert await world.store.list_job_costs(job.id) == [JobCost("cost", 4, 5)]

    async def test_many_at_once_are_accepted_until_it_is_used_up(self, world: World) -> None:
        answers = await asyncio.gather(*(_hand_in(world, charge(world, 3, 10)) for _ in range(12)))
        assert [type(answer) for answer in answers].count(Accepted) == 3
        assert await _used(world) == 9

    async def test_many_at_once_in_two_processes_are_accepted_until_it_is_used_up(self, world: World) -> None:
        other = await world.another_store()
        stores = [world.store, other] * 10
        submissions = [world.submission(charges=(charge(world, 3, 20),)) for _ in stores]
        answers = await asyncio.gather(
            *(store.accept_job(submission) for store, submission in zip(stores, submissions, strict=True))
        )
        assert [type(answer) for answer in answers].count(Accepted) == 6
        assert await _used(world) == 18

    async def test_a_refused_member_costs_its_neighbours_nothing(self, world: World) -> None:
        wishes = [(TENANT, 11), ("other", 1), (TENANT, 1), ("third", 11)]
        answers = await asyncio.gather(
            *(_hand_in(world, charge(world, units, 10), tenant=tenant) for tenant, units in wishes)
        )
        assert [type(answer) for answer in answers] == [OverBudget, Accepted, Accepted, OverBudget]

    async def test_a_commit_that_fails_charges_nothing(self, world: World) -> None:
        for nth in (1, 2):
            error = OSError("No space left on device")
            world.faults.raise_at("before-commit", error, world.faults.count("before-commit") + nth)
        with pytest.raises(StoreUnavailable):
            await _hand_in(world, charge(world, 3, 10))
        assert await _used(world) == 0


class TestChargesAndKeys(Suite):
    """Repeats are not charged."""

    async def test_a_replay_is_not_charged_even_where_nothing_is_left(self, world: World) -> None:
        first = await _hand_in(world, charge(world, 10, 10), key=key_of(world))
        assert isinstance(first, Accepted)
        assert await _hand_in(world, charge(world, 10, 10), key=key_of(world)) == Replayed(first.job)
        conflict = await _hand_in(world, charge(world, 10, 10), key=key_of(world, fingerprint="e" * 64))
        assert conflict == KeyConflict(first.job.id)
        assert await _used(world) == 10

    async def test_the_same_key_many_times_at_once_is_charged_once(self, world: World) -> None:
        answers = await asyncio.gather(*(_hand_in(world, charge(world, 6, 10), key=key_of(world)) for _ in range(10)))
        assert sorted(type(answer).__name__ for answer in answers) == ["Accepted"] + ["Replayed"] * 9
        assert await _used(world) == 6

    async def test_a_refused_key_many_times_at_once_is_refused_each_time(self, world: World) -> None:
        answers = await asyncio.gather(*(_hand_in(world, charge(world, 11, 10), key=key_of(world)) for _ in range(4)))
        assert {type(answer) for answer in answers} == {OverBudget}

    async def test_a_key_whose_window_is_over_is_charged_again(self, world: World) -> None:
        await _hand_in(world, charge(world, 6, 20), key=key_of(world, window_s=10))
        world.clock.advance(10)
        assert isinstance(await _hand_in(world, charge(world, 6, 20), key=key_of(world)), Accepted)
        assert await _used(world) == 12


class TestGivingBack(Suite):
    """What never started costs nothing; what has started stays charged."""

    async def test_a_job_cancelled_before_it_started_is_given_back(self, world: World) -> None:
        job, kept = await _accepted(world, 6), await _accepted(world, 3)
        await cancel(world, job)
        assert await _used(world) == 3
        assert await world.store.list_job_costs(job.id) == [JobCost("cost", 0, 0)]
        await cancel(world, job)
        await cancel(world, kept)
        assert await _used(world) == 0

    async def test_it_goes_back_into_the_window_that_it_came_from(self, world: World) -> None:
        job = await _accepted(world, 6)
        world.clock.advance(DAY_S)
        await _accepted(world, 2)
        await cancel(world, job)
        rows = await world.store.list_spending(TENANT, 10)
        assert [(row.window.began_at, row.charged) for row in rows] == [
            (window_of(world.now, DAY_S).began_at, 2),
            (window_of(world.now, DAY_S).began_at - DAY_S * 1000, 0),
        ]

    async def test_jobs_that_expire_before_they_started_are_given_back(self, world: World) -> None:
        for _ in range(3):
            await _accepted(world, 2, deadline_at=world.now + 1000)
        await _accepted(world, 5, deadline_at=world.now + 1000)
        world.clock.advance(1)
        assert await world.store.expire_overdue(Policies(world.policies), world.now, 3) == 3
        assert await _used(world) < 11
        assert await world.claim() == []
        assert await _used(world) == 0

    async def test_jobs_of_a_revoked_tenant_that_never_started_are_given_back(self, world: World) -> None:
        started = await _accepted(world, 1)
        await world.restart(started.id)
        for delay_s in (0, 60):
            await _accepted(world, 4, delay_s=delay_s)
        await revoke(world, Revocation.CANCEL)
        await world.store.carry_out_revocation(TENANT, Policies(world.policies), world.now, 100)
        assert await _used(world) == 1

    async def test_a_job_that_started_stays_charged_however_it_ends(self, world: World) -> None:
        for ending in (DONE, BROKEN):
            job = await _accepted(world, 2)
            await world.finish(await world.restart(job.id), ending)
        outcomes: tuple[Outcome, ...] = (FLAKY, Released())
        for outcome in outcomes:
            job = await _accepted(world, 2)
            await world.finish(await world.restart(job.id), outcome)
            await cancel(world, job)
        assert await _used(world) == 8

    async def test_a_redrive_is_not_charged(self, world: World) -> None:
        job = await _accepted(world, 4)
        failed = await world.finish(await world.restart(job.id), BROKEN)
        new = await world.store.redrive_job(Redriving(TENANT, failed.id, world.submission().job_id, world.now))
        assert isinstance(new, JobRecord)
        assert (await cancel(world, new)).status is Status.CANCELLED
        assert await _used(world) == 4


class TestBudgetsInInbox(InboxSuite):
    """What a caller commits is there; it is charged when it is promoted, and fails if it does not fit then."""

    async def test_what_fits_is_charged_and_the_rest_fails(self, world: World, inbox: Inbox) -> None:
        jobs = [await inbox.commit(charges=(charge(world, 4),)) for _ in range(3)]
        assert await _used(world) == 0
        terms = Terms(book=LimitBook({(f"{BUDGET}cost", EACH, ALL): 0.000_01}))
        assert await inbox.promote(terms=terms) == 3
        seen = [await world.find(job.id) for job in jobs]
        assert [job.status for job in seen] == [Status.QUEUED, Status.QUEUED, Status.FAILED]
        assert seen[-1].error is not None
        assert (seen[-1].error.category, seen[-1].error.code) == (ErrorCategory.LIMIT_EXCEEDED, "budget-exceeded")
        assert await _used(world) == 8

    async def test_a_job_that_is_cancelled_in_the_inbox_costs_nothing(self, world: World, inbox: Inbox) -> None:
        world.policies[OPERATION] = replace(POLICY, cost={"cost": 1.0})
        job = await inbox.commit(charges=(charge(world, 4),))
        assert (await cancel(world, job)).status is Status.CANCELLED
        assert await _used(world) == 0


class TestSpendingLists(Suite):
    """Window by window, for whoever looks after a tenant."""

    async def test_the_newest_windows_come_first_and_pages_join(self, world: World) -> None:
        for day in range(3):
            await _accepted(world, 1 + day)
            await _accepted(world, 10, operation=OTHER_OPERATION)
            world.clock.advance(DAY_S)
        await _accepted(world, 99, tenant="other")
        whole = await world.store.list_spending(TENANT, 100)
        assert [row.charged for row in whole] == [3, 10, 2, 10, 1, 10]
        assert [row.operation for row in whole[:2]] == [OPERATION, OTHER_OPERATION]
        pages: list[SpendingRow] = []
        while page := await world.store.list_spending(TENANT, 2, pages[-1] if pages else None):
            pages += page
        assert pages == list(whole)

    async def test_nothing_is_read_of_who_is_not_there(self, world: World) -> None:
        rows: Sequence[object] = await world.store.list_spending("nobody", 10)
        assert list(rows) == []
        assert list(await world.store.list_job_costs("nobody")) == []


def replace_window(charge: Charge, window: Window) -> Charge:
    """The same charge in another window."""
    return Charge(charge.kind, charge.units, window, charge.caps)
