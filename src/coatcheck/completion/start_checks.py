"""How well estimates hold: of some jobs it is looked up afterwards if they had started by the bound given for them."""

from collections import OrderedDict
from typing import Final

from coatcheck.completion.estimates import StartEstimate
from coatcheck.core import limits
from coatcheck.core.job import JobRecord
from coatcheck.core.states import Status
from coatcheck.observe.metrics import Metrics
from coatcheck.observe.rounds import Rounds
from coatcheck.store.clock import Clock
from coatcheck.store.contract import ReadingStore

_IDLE_S: Final = 60.0
_EACH_S: Final = 1.0
_BATCH_MAX: Final = 20


class StartChecks:
    """Remembers at most START_CHECKS_MAX jobs and asks for each once, when its bound has passed."""

    def __init__(self, store: ReadingStore, clock: Clock, metrics: Metrics) -> None:
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._promised: OrderedDict[str, tuple[JobRecord, StartEstimate]] = OrderedDict()
        self._rounds = Rounds("start-checks", self.check_due)

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._rounds.start()

    async def stop(self) -> None:
        """Ask no more."""
        await self._rounds.stop()

    def note(self, job: JobRecord, estimate: StartEstimate) -> None:
        """A new job was answered with this estimate."""
        if len(self._promised) < limits.START_CHECKS_MAX:
            self._promised[job.id] = (job, estimate)
            if len(self._promised) == 1:
                self._rounds.wake()

    async def check_due(self) -> float:
        """Look at jobs whose bound has passed; returns the seconds until the next look."""
        now = self._clock.now()
        due = [job for job, estimate in self._promised.values() if estimate.bound < now]
        for job in due[:_BATCH_MAX]:
            found = await self._store.find_job(job.tenant, job.id, now)
            _, estimate = self._promised.pop(job.id)
            if isinstance(found, JobRecord):
                self._count(found, estimate)
        return _EACH_S if self._promised else _IDLE_S

    def _count(self, job: JobRecord, estimate: StartEstimate) -> None:
        if job.started_at is None and job.status is Status.CANCELLED:
            # Nobody let it come to its start.
            return
        held = job.started_at is not None and job.started_at <= estimate.bound
        self._metrics.count("estimated_starts", operation=job.operation, held="yes" if held else "no")
