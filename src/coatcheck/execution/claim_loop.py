"""Takes jobs as long as they can start at once: woken by hints and by places that get free, with a slow poll behind.

Claims what can start now and nothing more, so that no job waits here while another worker could run it.
"""

import asyncio
import math
from collections.abc import Callable
from random import random

from coatcheck.app import Operation
from coatcheck.core.backoff import Backoff
from coatcheck.core.policy import RunsIn
from coatcheck.core.tenancy import OperationMode
from coatcheck.execution.held import Ledger
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.placement import Placement
from coatcheck.observe.logs import get_logger
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import Claim, ClaimRequest, Claims, WakeUp, WakeUpKind

RETRY = Backoff(first_s=0.1, factor=2.0, max_s=2.0)
CROWDED_S = 0.02


class ClaimLoop:
    """One worker's claims. `begin` starts an attempt; it is told when the claim was asked for, in monotonic seconds."""

    def __init__(
        self,
        parts: WorkerParts,
        worker_id: str,
        ledger: Ledger,
        placement: Placement,
        begin: Callable[[Claim, float], None],
    ) -> None:
        self._parts = parts
        self._ledger = ledger
        self._worker_id = worker_id
        self._placement = placement
        self._begin = begin
        operations = list(parts.app.operations.values())
        self._shared = [operation for operation in operations if operation.policy.runs_in is not RunsIn.PROCESS]
        self._solo = [operation for operation in operations if operation.policy.runs_in is RunsIn.PROCESS]
        self._shares = {name: share for name, share in map(self._share_of, operations) if share is not None}
        self._policies = {operation.name: operation.policy for operation in operations}
        self._woken = asyncio.Event()
        self._is_stopping = False
        self._failures = 0
        self._log = get_logger("worker")

    def hint(self, wake_up: WakeUp) -> None:
        """Somebody says that there is work."""
        if wake_up.kind in (WakeUpKind.READY, WakeUpKind.SCHEDULED) and self._has_place:
            self._woken.set()

    def place_freed(self) -> None:
        """An attempt ended, or a runner is ready."""
        self._woken.set()

    def controls_changed(self) -> None:
        """What could not start may be able to now."""
        self._woken.set()

    def stop(self) -> None:
        """Claim nothing more; `run` returns when the claim that may be under way is settled."""
        self._is_stopping = True
        self._woken.set()

    async def run(self) -> None:
        """Claim until stopped."""
        while not self._is_stopping:
            self._woken.clear()
            wait_s = await self.turn()
            if wait_s > 0:
                await self._wait(wait_s)

    async def turn(self) -> float:
        """Claim once for each kind of place; returns how many seconds nothing more can be had without a hint."""
        try:
            await self._parts.directory.confirmed()
            waits = [
                await self._claim(self._started_of(self._shared), self._placement.free_shared),
                await self._claim(self._started_of(self._solo), self._placement.free_solo),
            ]
        except StoreUnavailable as error:
            self._failures += 1
            if self._failures == 1:
                self._log.warning("store_unavailable", verb="claim_ready", error=str(error))
            return self._jittered(RETRY.ceiling_s(self._failures))
        except Exception:
            self._failures += 1
            self._log.exception("claim_failed")
            return self._jittered(RETRY.ceiling_s(self._failures))
        self._failures = 0
        return min(waits)

    async def _claim(self, operations: list[Operation], slots: int) -> float:
        poll_s = self._jittered(self._parts.settings.poll_s)
        if slots <= 0 or not operations:
            return poll_s
        now, asked_s = self._parts.clock.now(), self._parts.clock.monotonic_s()
        request = ClaimRequest(
            worker_id=self._worker_id,
            slots=slots,
            slots_by_operation={operation.name: slots for operation in operations},
            policies={operation.name: operation.policy for operation in operations},
            terms=self._parts.directory.current_terms(),
            shares=self._shares,
            here=self._ledger.by_turn() if self._shares else {},
        )
        claims = await self._parts.store.claim_ready(request, now)
        for claim in claims.claims:
            self._begin_safely(claim, asked_s)
        if len(claims.claims) >= slots:
            return 0.0
        if claims.is_crowded:
            return self._jittered(CROWDED_S)
        return min(poll_s, self._wait_for_due(claims, now, poll_s))

    def _started_of(self, operations: list[Operation]) -> list[Operation]:
        """Those whose jobs may start."""
        directory = self._parts.directory
        return [operation for operation in operations if directory.mode(operation.name) is not OperationMode.PAUSED]

    def _share_of(self, operation: Operation) -> tuple[str, int | None]:
        """How many of this worker's places one tenant may have for an operation's jobs: always one."""
        settings, policy = self._parts.settings, operation.policy
        is_solo = policy.runs_in is RunsIn.PROCESS
        places = settings.solo_runners if is_solo else settings.runners * settings.concurrency
        return operation.name, None if policy.share_max is None else max(1, math.floor(policy.share_max * places))

    def _wait_for_due(self, claims: Claims, asked_at: int, poll_s: float) -> float:
        due_at = claims.next_due_at
        # Due already and still not given: it waits for something else than time.
        if due_at is None or due_at <= asked_at:
            return poll_s
        return max(0.001, (due_at - self._parts.clock.now()) / 1000)

    def _begin_safely(self, claim: Claim, asked_s: float) -> None:
        try:
            self._begin(claim, asked_s)
        except Exception:
            # Nobody keeps its lease: it runs out, and the job is taken back. Its neighbours start all the same.
            self._log.exception("claim_dropped", job=claim.job.id, operation=claim.job.operation)

    @property
    def _has_place(self) -> bool:
        return self._placement.free_shared > 0 or self._placement.free_solo > 0

    def _jittered(self, seconds: float) -> float:
        return seconds * (0.8 + 0.4 * random())  # noqa: S311 - spreads polls, hides nothing

    async def _wait(self, seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, self._woken.set)
        await self._woken.wait()
        timer.cancel()
