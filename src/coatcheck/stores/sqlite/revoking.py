"""What becomes of a revoked tenant's jobs, step by step."""

from collections.abc import Sequence

from coatcheck.core import limits
from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policies
from coatcheck.core.states import FINAL, Status
from coatcheck.core.tenancy import Revocation
from coatcheck.store.records import WakeUpKind
from coatcheck.store.revoking import REASON, RevocationsLeft, RevocationStep, RevocationTerms, done_entry
from coatcheck.stores.sqlite.audit import write_audit
from coatcheck.stores.sqlite.facet import Facet
from coatcheck.stores.sqlite.queue import take_waiting
from coatcheck.stores.sqlite.readers import Snapshot
from coatcheck.stores.sqlite.retention import bury
from coatcheck.stores.sqlite.rows import Place, fixed_of
from coatcheck.stores.sqlite.settling import Ended, Ending, end_jobs
from coatcheck.stores.sqlite.transaction import Transaction


class Revoking(Facet):
    """The engine's RevokingStore."""

    async def list_revoked(self, done_since: InstantMs, after: str, limit: int) -> Sequence[str]:
        rows = await self._readers.aside(
            lambda snapshot: snapshot.rows("list_revoked", done_since=done_since, after=after, limit=limit)
        )
        return [row[0] for row in rows]

    async def carry_out_revocation(self, tenant: str, policies: Policies, now: InstantMs, limit: int) -> RevocationStep:
        return await self._writer.run(lambda transaction: _carry_out(transaction, tenant, policies, now, limit))

    async def measure_revocations(self) -> RevocationsLeft:
        return await self._readers.aside(_measure)


def _carry_out(transaction: Transaction, tenant: str, policies: Policies, now: InstantMs, limit: int) -> RevocationStep:
    row = transaction.row("find_revocation", tenant=tenant)
    if row is None:
        return RevocationStep()
    terms = RevocationTerms.from_row(*row)
    operations = [row[0] for row in transaction.rows("list_operations", tenant=tenant)]
    cancelled = asked = erased = 0
    for operation in operations:
        policy = terms.of(operation)
        named = {"tenant": tenant, "operation": operation}
        if policy in (Revocation.CANCEL, Revocation.ERASE) and cancelled + asked < limit:
            ids = [row[0] for row in transaction.rows("jobs_to_cancel", limit=limit - cancelled - asked, **named)]
            ended = _cancel(transaction, ids, policies, now)
            cancelled, asked = cancelled + ended, asked + len(ids) - ended
        if policy is Revocation.ERASE and erased < limit:
            transaction.run("delete_keys_of", limit=limit, **named)
            ids = [row[0] for row in transaction.rows("jobs_to_erase", limit=limit - erased, **named)]
            erased += sum(_erase(transaction, job_id, now) for job_id in ids)
    transaction.fault_point("revocation-half")
    is_done = not (cancelled + asked + erased) and _is_done(transaction, tenant, terms, operations, now)
    return RevocationStep(cancelled, asked, erased, is_done)


def _measure(snapshot: Snapshot) -> RevocationsLeft:
    left = RevocationsLeft()
    for tenant, *row in snapshot.rows("revocations_under_way", limit=limits.TENANTS_SWEPT_MAX):
        left = left.and_of_one(*_measure_one(snapshot, tenant, RevocationTerms.from_row(*row)))
        if left.jobs >= limits.TENANT_JOBS_COUNTED_MAX:
            break
    return left


def _measure_one(snapshot: Snapshot, tenant: str, terms: RevocationTerms) -> tuple[int, int]:
    """How many jobs have to end yet, and how many are to be erased."""
    operations = [row[0] for row in snapshot.rows("list_operations", tenant=tenant)]
    held = terms.among(operations, Revocation.QUARANTINE)
    erased = terms.among(operations, Revocation.ERASE)

    def count(statement: str, **values: str | int | None) -> int:
        return int(snapshot.rows(statement, tenant=tenant, **values)[0][0])

    most = limits.TENANT_JOBS_COUNTED_MAX
    running = sum(count("count_running_here", operation=operation) for operation in held)
    ending = [operation for operation in operations if operation not in held]
    unfinished = sum(count("count_jobs", operation=operation, status=None, most=most) for operation in ending)
    finished = sum(
        count("count_jobs", operation=operation, status=status.value, most=most)
        for operation in erased
        for status in FINAL
    )
    return unfinished + running, finished


def _cancel(transaction: Transaction, job_ids: Sequence[str], policies: Policies, now: InstantMs) -> int:
    """End those that wait; returns how many. The others run, and are told to stop."""
    ended: list[Ended] = []
    for job_id in job_ids:
        job = transaction.job(job_id, now)
        assert job is not None, "this transaction has just found it"
        place = Place(job.operation, job.tenant, job.priority, job.id)
        moving = take_waiting(transaction, place)
        if moving is None:
            transaction.run("request_cancel", job_id=job_id, reason=REASON, now=now)
            transaction.hint(WakeUpKind.CHANGED, job_id)
            transaction.hint(WakeUpKind.CANCEL, job_id)
            continue
        policy = policies.of(job.operation)
        ending = Ending(Status.CANCELLED, policy, moving.changed(now), is_cancel_requested=True, cancel_reason=REASON)
        ended.append(Ended(place, fixed_of(job), ending, now))
    end_jobs(transaction, ended)
    return len(ended)


def _erase(transaction: Transaction, job_id: str, now: InstantMs) -> bool:
    transaction.hint(WakeUpKind.CHANGED, job_id)
    return bury(transaction, job_id, now)


def _is_done(
    transaction: Transaction, tenant: str, terms: RevocationTerms, operations: Sequence[str], now: InstantMs
) -> bool:
    """Whether nothing is left to do; if so, that is noted."""
    if not terms.may_be_done(now):
        return False
    for operation in operations:
        is_running = terms.of(operation) is Revocation.QUARANTINE
        if transaction.rows("has_open", tenant=tenant, operation=operation, is_running=is_running)[0][0]:
            return False
    if terms.policy is Revocation.ERASE:
        transaction.run("end_api_keys", tenant=tenant, now=now)
    if transaction.run("end_revocation", tenant=tenant, now=now):
        write_audit(transaction, done_entry(tenant, now))
    return True
