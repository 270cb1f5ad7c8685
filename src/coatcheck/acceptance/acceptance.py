"""The one commit between a valid submission and its 202. Nothing else calls the store's accept_job and hand_in."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from coatcheck.acceptance.random_bits import RandomBits
from coatcheck.acceptance.submissions import submission_of
from coatcheck.admission.admit import require_time_left
from coatcheck.admission.gate import Gate
from coatcheck.admission.options import Admitted
from coatcheck.app import Operation
from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.core.ids import IdSequence
from coatcheck.core.problems import Refused
from coatcheck.core.terms import ANY_TERMS, Terms
from coatcheck.store.clock import Clock
from coatcheck.store.contract import AcceptanceStore
from coatcheck.store.inbox import InboxStore
from coatcheck.store.records import Accepted, Disposition, Submission

Write: TypeAlias = Callable[[Submission], Awaitable[Disposition]]
"""One of the store's two ways to take a submission in."""


class Acceptance:
    """Lets admitted submissions through the gate and stores them under ids of their own, by the terms of the moment."""

    def __init__(
        self,
        store: AcceptanceStore,
        clock: Clock,
        gate: Gate,
        fault_point: FaultPoint = no_fault,
        terms: Callable[[], Terms] = lambda: ANY_TERMS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._gate = gate
        self._fault_point = fault_point
        self._terms = terms
        self._ids = IdSequence()
        self._random = RandomBits()

    async def accept(self, operation: Operation, admitted: Admitted, tenant: str) -> Disposition:
        """Store a new job, or find the one its key stands for; durable when it returns.

        Raises:
            Refused: a limit holds, or its deadline has passed; nothing was written and nothing used up.
            StoreUnavailable: the store is away. Nothing was written, unless PostgreSQL went away in the midst of the
                commit.
        """
        disposition = await self._let_in(operation, admitted, tenant, self._store.accept_job)
        self._fault_point("after-commit-before-response")
        return disposition

    async def hand_in(self, operation: Operation, admitted: Admitted, tenant: str, connection: Any) -> Disposition:
        """Write a new job within the transaction of a caller, or find the one its key stands for.

        Raises:
            Refused: a limit holds, or its deadline has passed; nothing was written and nothing used up.
            TypeError: the connection is of no driver that the engine knows.
            ValueError: the engine has no inbox, or no transaction is open on the connection.
            StoreUnavailable: the store is away; nothing was written.
        """
        store = self._store
        if not isinstance(store, InboxStore):
            raise ValueError("connection was given, but only a store on PostgreSQL takes work in your own transaction.")
        return await self._let_in(operation, admitted, tenant, lambda submission: store.hand_in(connection, submission))

    async def _let_in(self, operation: Operation, admitted: Admitted, tenant: str, write: Write) -> Disposition:
        """What the store makes of a submission that the gate lets in; only a new job uses up what was taken for it."""
        try:
            require_time_left(admitted)
            passage = await self._gate.enter(operation, admitted, tenant)
        except Refused:
            # A client whose 202 was lost is not to be told that nothing was stored.
            earlier = await self._earlier(operation, admitted, tenant)
            if earlier is None:
                raise
            return earlier
        # After a cancellation the commit may still be on its way.
        is_accepted = True
        try:
            disposition = await write(self._submission(operation, admitted, tenant))
            is_accepted = isinstance(disposition, Accepted)
        except Exception:
            # Whatever went wrong, no new job was answered for: what was taken for it is given back, and the error goes
            # on its way.
            is_accepted = False
            raise
        finally:
            passage.settle(is_accepted)
        return disposition

    async def _earlier(self, operation: Operation, admitted: Admitted, tenant: str) -> Disposition | None:
        """What the key of a submission stands for already, which is no new work."""
        if admitted.key is None:
            return None
        return await self._store.find_earlier(self._submission(operation, admitted, tenant))

    def _submission(self, operation: Operation, admitted: Admitted, tenant: str) -> Submission:
        now_us = self._clock.now_us()
        job_id = self._ids.next_id(now_us, self._random.next_bits())
        return submission_of(operation, admitted, tenant, job_id, now_us, self._terms())
