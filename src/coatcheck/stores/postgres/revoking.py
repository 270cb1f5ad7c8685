"""What becomes of a revoked tenant's jobs, step by step."""

from collections.abc import Sequence

from coatcheck.core import limits
from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policies
from coatcheck.core.starts import Turn
from coatcheck.core.states import Status
from coatcheck.core.tenancy import Revocation
from coatcheck.store.records import WakeUpKind
from coatcheck.store.revoking import REASON, RevocationsLeft, RevocationStep, RevocationTerms, done_entry
from coatcheck.stores.postgres.audit import write_audit
from coatcheck.stores.postgres.facet import Facet
from coatcheck.stores.postgres.queue import leave_turns, take_waiting
from coatcheck.stores.postgres.retention import bury
from coatcheck.stores.postgres.rows import Fixed, Place
from coatcheck.stores.postgres.settling import Ending, Endings
from coatcheck.stores.postgres.transaction import Transaction


class Revoking(Facet):
    """The engine's RevokingStore."""

    async def list_revoked(self, done_since: InstantMs, after: str, limit: int) -> Sequence[str]:
        return [row[0] for row in await self._transactions.read("list_revoked", done_since, after, limit)]

    async def carry_out_revocation(self, tenant: str, policies: Policies, now: InstantMs, limit: int) -> RevocationStep:
        turns: set[Turn] = set()

        async def act(transaction: Transaction) -> RevocationStep:
            turns.clear()
            return await _Carrying(transaction, policies, now, turns).out(tenant, limit)

        step = await self._transactions.run(act)
        await leave_turns(self._transactions, turns)
        return step

    async def measure_revocations(self) -> RevocationsLeft:
        left, most = RevocationsLeft(), limits.TENANT_JOBS_COUNTED_MAX
        for tenant, *row in await self._transactions.read("revocations_under_way", limits.TENANTS_SWEPT_MAX):
            terms = RevocationTerms.from_row(*row)
            operations = [found[0] for found in await self._transactions.read("list_operations", tenant)]
            held = terms.among(operations, Revocation.QUARANTINE)
            ending = [operation for operation in operations if operation not in held]
            erased = terms.among(operations, Revocation.ERASE)
            ((to_end, to_erase),) = await self._transactions.read(
                "measure_revocation", tenant, ending, held, erased, most
            )
            left = left.and_of_one(to_end, to_erase)
            if left.jobs >= most:
                break
        return left


class _Carrying:
    """One step. `turns`: those that lost a job by it."""

    def __init__(self, transaction: Transaction, policies: Policies, now: InstantMs, turns: set[Turn]) -> None:
        self._transaction = transaction
        self._policies = policies
        self._now = now
        self._turns = turns

    async def out(self, tenant: str, limit: int) -> RevocationStep:
        transaction = self._transaction
        row = await transaction.row("find_revocation", tenant)
        if row is None:
            return RevocationStep()
        terms = RevocationTerms.from_row(*row)
        operations = [row[0] for row in await transaction.rows("list_operations", tenant)]
        cancelled = asked = erased = 0
        for operation in operations:
            policy = terms.of(operation)
            if policy in (Revocation.CANCEL, Revocation.ERASE) and cancelled + asked < limit:
                left = limit - cancelled - asked
                ids = [row[0] for row in await transaction.rows("jobs_to_cancel", tenant, operation, left)]
                ended = await self._end_waiting(ids)
                cancelled += len(ended)
                asked += await self._ask([job_id for job_id in ids if job_id not in ended])
            if policy is Revocation.ERASE and erased < limit:
                await transaction.run("delete_keys_of", tenant, operation, limit)
                ids = [row[0] for row in await transaction.rows("jobs_to_erase", tenant, operation, limit - erased)]
                erased += await bury(transaction, ids, self._now)
                for job_id in ids:
                    transaction.hint(WakeUpKind.CHANGED, job_id)
        transaction.fault_point("revocation-half")
        is_done = not (cancelled + asked + erased) and await self._is_done(tenant, terms, operations)
        return RevocationStep(cancelled, asked, erased, is_done)

    async def _end_waiting(self, job_ids: Sequence[str]) -> set[str]:
        """End those that wait; which they are. One that just moves is found by the next step."""
        if not job_ids:
            return set()
        jobs = {}
        for job_id, operation, tenant, priority, *fixed in await self._transaction.rows("waiting_jobs", job_ids):
            jobs[job_id] = (Place(operation, tenant, priority, job_id), Fixed._make(fixed))
        taken, turns = await take_waiting(self._transaction, [place for place, _ in jobs.values()])
        self._turns |= turns
        endings = Endings(self._transaction)
        for job_id, moving in taken.items():
            place, fixed_parts = jobs[job_id]
            policy = self._policies.of(place.operation)
            ending = Ending(
                Status.CANCELLED, policy, moving.changed(self._now), is_cancel_requested=True, cancel_reason=REASON
            )
            endings.end_job(place, fixed_parts, ending, self._now)
        await endings.write()
        return set(taken)

    async def _ask(self, job_ids: Sequence[str]) -> int:
        """Tell those that run to stop; how many there were."""
        if not job_ids:
            return 0
        asked = await self._transaction.rows("request_cancels", job_ids, REASON, self._now)
        for (job_id,) in asked:
            self._transaction.hint(WakeUpKind.CHANGED, job_id)
            self._transaction.hint(WakeUpKind.CANCEL, job_id)
        return len(asked)

    async def _is_done(self, tenant: str, terms: RevocationTerms, operations: Sequence[str]) -> bool:
        """Whether nothing is left to do; if so, that is noted."""
        if not terms.may_be_done(self._now):
            return False
        held = terms.among(operations, Revocation.QUARANTINE)
        ending = [operation for operation in operations if operation not in held]
        if (await self._transaction.rows("has_open", tenant, ending, held))[0][0]:
            return False
        if terms.policy is Revocation.ERASE:
            await self._transaction.run("end_api_keys", tenant, self._now)
        if await self._transaction.run("end_revocation", tenant, self._now):
            await write_audit(self._transaction, done_entry(tenant, self._now))
        return True
