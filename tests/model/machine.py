"""The state machine: hypothesis chooses what clients, workers, upkeep and the clock do next."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import structs

from coatcheck.core.costs import ALL_OPERATIONS, Cap, Charge, window_of
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.ids import IdSequence
from coatcheck.core.job import Progress
from coatcheck.core.outcome import (
    Cancelled,
    Failed,
    Lost,
    Outcome,
    Released,
    ResultBody,
    RetryLater,
    Succeeded,
)
from coatcheck.core.quotas import ALL, EACH, Limit, LimitName
from coatcheck.core.states import Status
from coatcheck.store.records import (
    Beat,
    ClaimRequest,
    IdempotencyKey,
    JobQuery,
    Lease,
    Prunable,
    Redriving,
    Spending,
    Submission,
)
from coatcheck.testing.conformance.world import LEASE_S, StoreFactory

from .pair import POLICIES, STORES, TERMS, Pair
from .reading import (
    Invariants,
    compare_details,
    compare_jobs,
    compare_list,
    compare_measures,
    compare_outbox,
    known_jobs,
    rows_at_rest,
)

DAY_S = 86_400
OPERATIONS = sorted(POLICIES)
TENANTS = ("acme", "birch", "cedar")
RESULTS = {
    "small": ResultBody("application/json", b"null"),
    "too large to stand inline": ResultBody("application/json", b'"' + b"x" * 70_000 + b'"'),
    "a file": ResultBody("text/csv", b"a,b\n", "stock.csv"),
}

BROKEN = ErrorInfo(ErrorCategory.INVALID_INPUT, "There is no such branch.")

_via = st.integers(0, STORES - 1)
_pick = st.integers(0, 63)
_jitter = st.sampled_from([0.0, 0.5, 0.999])
_delay_s = st.sampled_from([0.0, 0.0, 0.0, 0.001, 5.0, 300.0])
_deadline_s = st.sampled_from([None, None, None, 0.5, 20.0, 4000.0])
_key = st.none() | st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from([40.0, 5000.0, 80_000.0]))
_errors = st.builds(
    ErrorInfo,
    st.sampled_from([ErrorCategory.HANDLER_ERROR, ErrorCategory.TIMEOUT]),
    st.sampled_from(["It broke.", "Ünlesbar"]),
    st.sampled_from([None, "code-7"]),
    st.sampled_from([None, "Traceback: …"]),
)
_outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(lambda size: Succeeded(RESULTS[size]), st.sampled_from(sorted(RESULTS))),
    st.builds(Failed, _errors, st.booleans()),
    st.builds(Failed, _errors, st.just(True)),
    st.builds(RetryLater, st.sampled_from([0.0, 2.0, 500.0])),
    st.just(Cancelled()),
    st.builds(Released, st.sampled_from([0.0, 10.0])),
    st.builds(Lost, st.booleans(), st.booleans()),
)
_progress = st.none() | st.builds(
    Progress, st.none() | st.sampled_from([0.0, 0.25, 1.0]), st.none() | st.sampled_from(["half way", "ready"])
)


_whose = st.tuples(st.sampled_from(TENANTS), st.sampled_from(OPERATIONS))
_pieces = st.tuples(
    _whose, _key, st.tuples(_delay_s, _deadline_s), st.tuples(st.sampled_from([0, 5, 5, 9]), st.integers(1, 3))
)


class StoreMachine(RuleBasedStateMachine):
    """Runs rules on a pair of store and model. Each step ends with a look at everything."""

    def __init__(self, factory: StoreFactory) -> None:
        super().__init__()
        self._factory = factory
        self._runner = asyncio.Runner()
        self._ids = IdSequence()
        self._serial = 0
        self._pair = Pair(factory)
        self._invariants = Invariants()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        self._runner.run(work)

    @initialize()
    def open(self) -> None:
        self._do(self._pair.open())

    # --- clients

    @rule(via=_via, pieces=st.lists(_pieces, min_size=1, max_size=5))
    def accept(self, via: int, pieces: list[Any]) -> None:
        self._do(self._pair.accept(via, [self._submission(*piece) for piece in pieces]))

    @rule(via=_via, piece=_pieces, others=st.lists(_whose, max_size=3), most=st.integers(0, 3))
    def accept_under_limits(self, via: int, piece: Any, others: list[Any], most: int) -> None:
        """One piece of work, or several without keys, for tenants with a limit in each operation and over all."""
        pieces = [(whose, None, *piece[2:]) for whose in (piece[0], *others)] if others else [piece]
        over_all = Limit((LimitName.QUEUED, EACH, ALL), most + 1)
        limited = [
            structs.replace(made, limits=(Limit((LimitName.QUEUED, EACH, made.operation), most), over_all))
            for made in (self._submission(*each) for each in pieces)
        ]
        self._do(self._pair.accept(via, limited))

    @rule(
        via=_via,
        early=st.lists(st.sampled_from(TENANTS), min_size=2, max_size=9),
        served=st.integers(1, 6),
        late=st.lists(st.sampled_from(TENANTS), min_size=1, max_size=6),
    )
    def busy_hour(self, via: int, early: list[str], served: int, late: list[str]) -> None:
        """Some hand in work, a part of it is started, others come: whose turn it is must be right to the end."""
        request = ClaimRequest("worker", 1, {OPERATIONS[-1]: 1}, POLICIES, TERMS)
        for tenants, claims in ((early, served), (late, len(early) + len(late) - served)):
            pieces = [((tenant, OPERATIONS[-1]), None, (0.0, None), (5, 2)) for tenant in tenants]
            self._do(self._pair.accept(via, [self._submission(*piece) for piece in pieces]))
            for _ in range(claims):
                self._do(self._pair.claim(via, request))

    @rule(
        via=_via,
        pieces=st.lists(st.tuples(st.sampled_from(TENANTS), _key, st.sampled_from([0, 1, 3])), min_size=1, max_size=4),
        most=st.integers(0, 9),
        delay_s=_delay_s,
    )
    def accept_under_a_budget(self, via: int, pieces: list[Any], most: int, delay_s: float) -> None:
        window, caps = window_of(self._pair.now, 3600.0), (Cap("exports", most), Cap(ALL_OPERATIONS, most + 1))
        for tenant, key, units in pieces:
            plain = self._submission((tenant, "exports"), key, (delay_s, None), (5, 2))
            charged = structs.replace(plain, charges=(Charge("cost", units, window, caps),))
            self._do(self._pair.accept(via, [charged]))

    @rule(via=_via, key=_key)
    def accept_on_a_full_disk(self, via: int, key: Any) -> None:
        submission = self._submission((TENANTS[0], OPERATIONS[0]), key, (0.0, None), (5, 2))
        self._do(self._pair.fail_to_accept(via, submission))

    @rule(via=_via, pick=_pick, reason=st.sampled_from([None, "enough"]))
    @precondition(lambda self: self._known())
    def cancel(self, via: int, pick: int, reason: str | None) -> None:
        self._do(self._pair.cancel(via, self._job(pick), reason))

    @rule(via=_via, pick=_pick)
    @precondition(lambda self: self._known())
    def erase(self, via: int, pick: int) -> None:
        self._do(self._pair.erase(via, self._job(pick)))

    @rule(via=_via, pick=_pick)
    @precondition(lambda self: self._known())
    def redrive(self, via: int, pick: int) -> None:
        tenant, job_id = self._job(pick)
        self._do(self._pair.redrive(via, Redriving(tenant, job_id, self._next_id(), self._pair.now)))

    @rule(via=_via, fate=st.sampled_from(["kept", "erased", "expired"]))
    @precondition(lambda self: self._pair.leases)
    def begin_a_second_life(self, via: int, fate: str) -> None:
        """A job does something, fails and is redriven; it may be gone before its successor asks what was done."""
        lease, effect = self._lease(1), b"%d" % self._serial
        self._do(self._pair.record_effect(via, lease, "mail", effect))
        self._do(self._pair.finish(via, [(lease, Failed(BROKEN, is_retryable=False), 0.5)]))
        job = self._pair.model.state.jobs.get(lease.job_id)
        if job is None:
            return
        named = (job.record.tenant, lease.job_id)
        self._do(self._pair.redrive(via, Redriving(*named, self._next_id(), self._pair.now)))
        if fate == "erased":
            self._do(self._pair.erase(via, named))
        elif fate == "expired" and job.record.expires_at is not None:
            self._pair.clock.advance(max(0, job.record.expires_at - self._pair.now) / 1000)
            self._do(self._pair.prune(via, Prunable.JOBS))
        self._do(self._pair.claim(via, ClaimRequest("worker", 5, {job.record.operation: 5}, POLICIES, TERMS)))

    @rule(
        via=_via,
        tenant=st.sampled_from(TENANTS),
        operation=st.none() | st.sampled_from(OPERATIONS),
        status=st.none() | st.sampled_from(list(Status)),
        limit=st.integers(1, 4),
    )
    def read_lists(self, via: int, tenant: str, operation: str | None, status: Status | None, limit: int) -> None:
        self._do(compare_list(self._pair, via, JobQuery(tenant, limit, operation, status)))
        self._do(compare_measures(self._pair, via))

    # --- workers

    @rule(
        via=_via,
        operations=st.sets(st.sampled_from(OPERATIONS), min_size=1),
        slots=st.integers(1, 5),
        share=st.integers(1, 5),
    )
    def claim(self, via: int, operations: set[str], slots: int, share: int) -> None:
        request = ClaimRequest("worker", slots, dict.fromkeys(operations, min(share, slots)), POLICIES, TERMS)
        self._do(self._pair.claim(via, request))

    @rule(via=_via, picks=st.lists(st.tuples(_pick, _progress), min_size=1, max_size=3))
    @precondition(lambda self: self._pair.leases)
    def beat(self, via: int, picks: list[tuple[int, Progress | None]]) -> None:
        self._do(self._pair.beat(via, [Beat(self._lease(pick), progress) for pick, progress in picks]))

    @rule(via=_via, endings=st.lists(st.tuples(_pick, _outcomes, _jitter), min_size=1, max_size=3))
    @precondition(lambda self: self._pair.leases)
    def finish(self, via: int, endings: list[tuple[int, Outcome, float]]) -> None:
        named = {self._lease(pick).job_id: (self._lease(pick), outcome, jitter) for pick, outcome, jitter in endings}
        self._do(self._pair.finish(via, list(named.values())))

    @rule(via=_via, pick=_pick, name=st.sampled_from(["mail", "charge"]))
    @precondition(lambda self: self._pair.leases)
    def record_effect(self, via: int, pick: int, name: str) -> None:
        self._serial += 1
        self._do(self._pair.record_effect(via, self._lease(pick), name, b"%d" % self._serial))

    @rule(
        via=_via,
        pick=_pick,
        kind=st.sampled_from(["calls", "tokens"]),
        units=st.sampled_from([0, 1, 1_000_000, 333_333]),
        number=st.integers(1, 4),
    )
    @precondition(lambda self: self._pair.leases)
    def spend(self, via: int, pick: int, kind: str, units: int, number: int) -> None:
        """Also again what was spent before, and under a lease that was lost."""
        window = window_of(self._pair.now, 3600.0)
        self._do(self._pair.spend(via, Spending(self._lease(pick), number, kind, units, window)))

    # --- upkeep

    @rule(via=_via)
    def promote(self, via: int) -> None:
        self._do(self._pair.promote(via))

    @rule(via=_via)
    def expire(self, via: int) -> None:
        self._do(self._pair.expire(via))

    @rule(via=_via, what=st.sampled_from(Prunable))
    def prune(self, via: int, what: Prunable) -> None:
        self._do(self._pair.prune(via, what))

    @rule(via=_via, looks=st.integers(1, 9), living=st.lists(_pick, max_size=2))
    def rescue(self, via: int, looks: int, living: list[int]) -> None:
        """The sweep's looks at the leases, while some of them are kept alive."""
        kept = [Beat(self._lease(pick)) for pick in living if self._pair.leases]
        for _ in range(looks):
            self._do(self._pair.rescue(via))
            self._pair.clock.advance(LEASE_S / 5)
            self._do(self._pair.beat(via, kept))

    @rule(keep=st.integers(0, 3))
    def relay(self, keep: int) -> None:
        self._do(compare_outbox(self._pair, keep))

    # --- the machine

    @rule(seconds=st.sampled_from([0.001, 1.0, 6.0, LEASE_S, 70.0, 1000.0, float(DAY_S)]))
    def let_time_pass(self, seconds: float) -> None:
        self._pair.clock.advance(seconds)

    @rule(pick=_pick, is_before=st.booleans())
    @precondition(lambda self: self._pair.boundaries())
    def reach_a_boundary(self, pick: int, is_before: bool) -> None:
        """The very millisecond at which something is due, or over, or the one before."""
        instants = self._pair.boundaries()
        left_ms = instants[pick % len(instants)] - self._pair.now
        self._pair.clock.advance((left_ms - is_before) / 1000)
        for (tenant, operation, _), known in list(self._pair.model.state.keys.items())[-2:]:
            self._do(self._pair.accept(0, [self._again(tenant, operation, known.key)]))

    @rule(seconds=st.sampled_from([-DAY_S, -3600, -1, 1, 3600, DAY_S]))
    def set_the_wall_clock(self, seconds: int) -> None:
        self._pair.clock.set_wall(self._pair.now + seconds * 1000)

    @rule()
    def reopen(self) -> None:
        self._do(self._pair.close())
        self._do(self._pair.open())

    @invariant()
    def store_and_model_agree(self) -> None:
        if self._is_open:
            via = self._serial % STORES
            self._serial += 1
            self._do(compare_jobs(self._pair, via))
            self._do(self._invariants.check(self._pair, via))
            for tenant, job_id in self._latest():
                self._do(compare_details(self._pair, via, (tenant, job_id)))
            for lease in self._pair.leases[-3:]:
                self._do(self._pair.find_effect(via, lease, "mail"))

    def teardown(self) -> None:
        try:
            if self._is_open:
                self._do(self._end())
        finally:
            self._do(self._pair.close())
            self._runner.close()

    async def _end(self) -> None:
        """Let everything end and be forgotten: nothing may be left."""
        pair = self._pair
        for job_id, tenant in known_jobs(pair.model):
            await pair.cancel(0, (tenant, job_id), None)
        for lease in pair.leases:
            await pair.finish(0, [(lease, Cancelled(), 0.5)])
        await compare_outbox(pair, 0)
        for _ in range(2):
            pair.clock.advance(100 * DAY_S)
            for what in Prunable:
                await pair.prune(1, what)
        assert rows_at_rest(await self._factory.count_rows()) == {}

    @property
    def _is_open(self) -> bool:
        return self._pair.is_open

    def _known(self) -> bool:
        return bool(known_jobs(self._pair.model))

    def _job(self, pick: int) -> tuple[str, str]:
        """Tenant and id of some job, more often a late one."""
        jobs = known_jobs(self._pair.model)
        job_id, tenant = jobs[-1 - pick % len(jobs)]
        return tenant, job_id

    def _latest(self) -> list[tuple[str, str]]:
        return [self._job(0), self._job(self._serial)] if self._known() else []

    def _lease(self, pick: int) -> Lease:
        """Some lease: three times out of four one that holds, where there is one."""
        leases, which = self._pair.leases, pick // 4
        holding = [lease for lease in leases if self._pair.model.state.holder(lease) is not None]
        chosen = holding if holding and pick % 4 else leases
        return chosen[-1 - which % len(chosen)]

    def _next_id(self) -> str:
        self._serial += 1
        return self._ids.next_id(self._pair.clock.now_us(), self._serial)

    def _again(self, tenant: str, operation: str, key: IdempotencyKey) -> Submission:
        submission = self._submission((tenant, operation), None, (0.0, None), (5, 2))
        return structs.replace(submission, key=structs.replace(key, expires_at=self._pair.now + 5_000_000))

    def _submission(self, whose: Any, key: Any, times: Any, numbers: tuple[int, int]) -> Submission:
        now, (delay_s, deadline_s) = self._pair.now, times
        available_at = now + round(delay_s * 1000)
        return Submission(
            job_id=self._next_id(),
            tenant=whose[0],
            operation=whose[1],
            operation_version="3",
            payload=b'{"serial":%d}' % self._serial,
            created_at=now,
            available_at=available_at,
            deadline_at=None if deadline_s is None else available_at + round(deadline_s * 1000),
            priority=numbers[0],
            max_attempts=numbers[1],
            correlation_id=f"corr-{self._serial}",
            traceparent="00-trace" if self._serial % 2 else None,
            key=None if key is None else IdempotencyKey(key[0], "sha256-1", key[1] * 64, now + round(key[2] * 1000)),
        )
