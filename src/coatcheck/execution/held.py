"""The attempts whose leases this worker keeps, and where each of them stands."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from coatcheck.core.errors import ErrorInfo
from coatcheck.core.job import JobRecord, Progress
from coatcheck.core.policy import Policy
from coatcheck.core.starts import Turn
from coatcheck.store.records import Lease

if TYPE_CHECKING:
    from coatcheck.execution.runner_process import RunnerProcess


class StopReason(StrEnum):
    """Why a handler was told to stop."""

    CANCEL = "cancel"
    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    LIMIT = "limit"
    RELEASE = "release"
    LOST = "lost"


class Phase(StrEnum):
    """WAITING for a runner, RUNNING in one, FINISHING: its outcome is on its way to the store. OVER: let go."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHING = "finishing"
    OVER = "over"


@dataclass(slots=True, eq=False)
class HeldAttempt:
    """One attempt. `seq` names it towards its runner; `unsaved` is progress that is not stored yet.

    `kept_s`: since when, in monotonic seconds, the store has said that the lease is this worker's. `ran_ms`: how long
    earlier attempts of the job ran, where that is limited. `limit`: with LIMIT as its reason to stop, which one.
    """

    seq: int
    lease: Lease
    job: JobRecord
    payload: bytes
    policy: Policy
    is_solo: bool
    started_s: float
    kept_s: float
    phase: Phase = Phase.WAITING
    runner: "RunnerProcess | None" = None
    stop_reason: StopReason | None = None
    timer: asyncio.TimerHandle | None = None
    unsaved: Progress | None = None
    has_progress: bool = False
    ran_ms: int = 0
    limit: ErrorInfo | None = None
    spends: int = 0
    spending: asyncio.Lock | None = None

    def disarm(self) -> None:
        """Let its timer never ring."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def log_fields(self) -> dict[str, object]:
        """What every log line about it carries."""
        return {
            "job": self.job.id,
            "attempt": self.lease.attempt,
            "tenant": self.job.tenant,
            "operation": self.job.operation,
            "correlation_id": self.job.correlation_id,
        }


class Ledger:
    """Every attempt with a lease, by number and by job."""

    def __init__(self) -> None:
        self._by_seq: dict[int, HeldAttempt] = {}
        self._by_job: dict[str, HeldAttempt] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._by_seq)

    def add(self, attempt: HeldAttempt) -> None:
        self._by_seq[attempt.seq] = attempt
        self._by_job[attempt.job.id] = attempt

    def remove(self, attempt: HeldAttempt) -> None:
        """Let go of an attempt: it is stored, or lost."""
        attempt.phase = Phase.OVER
        self._by_seq.pop(attempt.seq, None)
        if self._by_job.get(attempt.job.id) is attempt:
            del self._by_job[attempt.job.id]
        self._changed.set()

    def find(self, seq: int) -> HeldAttempt | None:
        return self._by_seq.get(seq)

    def find_job(self, job_id: str) -> HeldAttempt | None:
        """The attempt of a job, or None where this worker has none."""
        return self._by_job.get(job_id)

    def all(self) -> Sequence[HeldAttempt]:
        return list(self._by_seq.values())

    def by_turn(self) -> Mapping[Turn, int]:
        """How many attempts there are, by operation and tenant."""
        return Counter((attempt.job.operation, attempt.job.tenant) for attempt in self._by_seq.values())

    def in_phase(self, *phases: Phase) -> Sequence[HeldAttempt]:
        return [attempt for attempt in self._by_seq.values() if attempt.phase in phases]

    async def wait_empty(self, timeout_s: float) -> bool:
        """Whether nothing was left before `timeout_s` seconds were over."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._by_seq:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True
