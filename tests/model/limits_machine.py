"""A second machine, for limits on running jobs and for tenants that may not start: as many start as may, and no more.

Which of several jobs starts first is the other machine's question. Here it is how many, after any story of changed
limits, pauses, ends, losses and cancellations.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coatcheck.core.outcome import Outcome, Released
from coatcheck.core.quotas import ALL, LimitBook, LimitKey, LimitName
from coatcheck.core.starts import Turn
from coatcheck.core.tenancy import Controls, TenantControl
from coatcheck.core.terms import Terms
from coatcheck.testing.conformance.start_limits import end
from coatcheck.testing.conformance.world import (
    DONE,
    FLAKY,
    OPERATION,
    OTHER_OPERATION,
    StoreFactory,
    World,
    cancel,
    let_leases_run_out,
)

STORES = 2
TENANTS = ("acme", "birch", "cedar")
OPERATIONS = (OPERATION, OTHER_OPERATION)
ATTEMPTS = 1000

_via = st.integers(0, STORES - 1)
_pick = st.integers(0, 63)
_most = st.none() | st.integers(0, 3)


class LimitsMachine(RuleBasedStateMachine):
    """Remembers what waits and what runs; the terms are those of every process at once."""

    def __init__(self, factory: StoreFactory) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._world = World(factory, events=False)
        self._terms = Terms()
        self._waiting: dict[str, Turn] = {}
        self._running: dict[str, Any] = {}

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(work)

    @initialize()
    def open(self) -> None:
        self._do(self._world.reopen())
        self._stores = [self._world.store, *(self._do(self._world.another_store()) for _ in range(STORES - 1))]

    @rule(turns=st.lists(st.tuples(st.sampled_from(OPERATIONS), st.sampled_from(TENANTS)), min_size=1, max_size=6))
    def hand_in(self, turns: list[Turn]) -> None:
        for operation, tenant in turns:
            job = self._do(self._world.accept(operation=operation, tenant=tenant, max_attempts=ATTEMPTS))
            self._waiting[job.id] = (operation, tenant)

    @rule(
        paused=st.sets(st.sampled_from(TENANTS), max_size=2),
        over_all=st.tuples(_most, _most, _most),
        in_one=st.tuples(_most, _most, _most),
    )
    def decide(self, paused: set[str], over_all: tuple[Any, ...], in_one: tuple[Any, ...]) -> None:
        """Operators change what holds; upkeep hears of it."""
        scopes = ((ALL, over_all), (OPERATION, in_one))
        limits: dict[LimitKey, float | None] = {
            (LimitName.RUNNING, name, scope): most
            for scope, values in scopes
            for name, most in zip(TENANTS, values, strict=True)
        }
        controls = Controls(tenants={name: TenantControl(name, is_paused=True) for name in paused})
        self._terms = Terms(controls, LimitBook(limits))
        self._sweep()

    @rule(via=_via, slots=st.integers(1, 6))
    def claim(self, via: int, slots: int) -> None:
        expected = min(slots, sum(map(self._startable, TENANTS)))
        self._world.store = self._stores[via]
        claims = self._do(self._world.claim(slots, terms=self._terms))
        assert len(claims) == expected, "as many start as may"
        for claim in claims:
            assert self._waiting.pop(claim.job.id) == (claim.job.operation, claim.job.tenant)
            self._running[claim.job.id] = claim

    @rule(via=_via, pick=_pick, outcome=st.sampled_from([DONE, FLAKY, Released()]))
    @precondition(lambda self: self._running)
    def finish(self, via: int, pick: int, outcome: Outcome) -> None:
        claim = self._running.pop(sorted(self._running)[pick % len(self._running)])
        self._do(end(self._world, claim, outcome, self._stores[via]))
        if outcome is not DONE:
            self._waiting[claim.job.id] = (claim.job.operation, claim.job.tenant)

    @rule(pick=_pick)
    @precondition(lambda self: self._waiting)
    def cancel(self, pick: int) -> None:
        job_id = sorted(self._waiting)[pick % len(self._waiting)]
        _, tenant = self._waiting.pop(job_id)
        self._do(cancel(self._world, self._do(self._world.find(job_id, tenant))))

    @rule()
    @precondition(lambda self: self._running)
    def lose_all(self) -> None:
        """Every worker dies; the rescue takes their jobs back, and upkeep looks at the turns after it."""
        assert self._do(let_leases_run_out(self._world)) == len(self._running)
        for claim in self._running.values():
            self._waiting[claim.job.id] = (claim.job.operation, claim.job.tenant)
        self._running.clear()
        self._sweep()

    @invariant()
    def nobody_has_more_than_was_started(self) -> None:
        measured = self._do(self._world.store.measure_queues(self._world.now)) if hasattr(self, "_stores") else ()
        assert sum(one.running for one in measured) == len(self._running)
        assert sum(one.ready for one in measured) == len(self._waiting)

    def teardown(self) -> None:
        self._do(self._world.close())
        self._runner.close()

    def _sweep(self) -> None:
        self._do(self._world.store.restore_turns(self._terms, None, 100))

    def _startable(self, tenant: str) -> int:
        """How many of a tenant's jobs may start now."""
        if not self._terms.tenant(tenant).may_start:
            return 0
        waiting = Counter(operation for operation, name in self._waiting.values() if name == tenant)
        running = Counter(claim.job.operation for claim in self._running.values() if claim.job.tenant == tenant)
        total = 0
        for operation in OPERATIONS:
            most = self._terms.book.values.get((LimitName.RUNNING, tenant, operation))
            room = waiting[operation] if most is None else most - running[operation]
            total += max(0, min(waiting[operation], round(room)))
        most = self._terms.book.values.get((LimitName.RUNNING, tenant, ALL))
        return total if most is None else max(0, min(total, round(most) - running.total()))
