"""Worker: claims jobs, runs them in runners, keeps their leases and stores what comes of them."""

import asyncio
import itertools
import secrets
from collections.abc import Callable

from coatcheck.execution.asks import Asks
from coatcheck.execution.attempts import Attempts, Rooms
from coatcheck.execution.claim_loop import ClaimLoop
from coatcheck.execution.effects import Effects
from coatcheck.execution.escalation import Escalation
from coatcheck.execution.finishing import Finisher
from coatcheck.execution.heartbeats import Heartbeats
from coatcheck.execution.held import Ledger, Phase
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.placement import Placement
from coatcheck.execution.runner_process import RunnerProcess
from coatcheck.execution.runner_spec import RunnerSpec
from coatcheck.execution.spends import Spends
from coatcheck.observe.logs import get_logger
from coatcheck.store.records import WakeUp

# How much of a drain's grace handlers get to stop in, once they were told to.
STOP_SHARE = 0.2
STOP_S_MAX = 2.0
# How long the store gets to take what is given back.
GIVE_BACK_S = 5.0
QUIT_S = 2.0


class Worker:
    """One worker of a store, with runners of its own. Made, started and stopped on one event loop."""

    def __init__(self, parts: WorkerParts) -> None:
        self._parts = parts
        self._log = get_logger("worker")
        self._numbers = itertools.count(1)
        self._ledger = Ledger()
        self._finisher = Finisher(parts, self._ledger)
        self._escalation = Escalation(parts, self._ledger, self._finisher)
        self._heartbeats = Heartbeats(parts, self._ledger, self._escalation)
        self._asks = Asks(self._escalation)
        effects, spends = Effects(parts, self._asks), Spends(parts, self._escalation, self._asks)
        rooms = Rooms(self._escalation, self._heartbeats, effects, spends)
        self._attempts = Attempts(parts, self._ledger, self._finisher, rooms)
        self._placement = Placement(parts, self._escalation, self._finisher, self._make_runner)
        self._attempts.placement = self._placement
        # A random identity for each start: nothing can be taken for the work of an earlier one.
        worker_id = f"worker_{secrets.token_hex(8)}"
        self._claims = ClaimLoop(parts, worker_id, self._ledger, self._placement, self._attempts.begin)
        self._attempts.on_place = self._claims.place_freed
        self._finisher.on_stored = self._claims.place_freed
        self._escalation.on_freed = self._attempts.on_capacity
        parts.directory.on_change(self._claims.controls_changed)
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_listening: Callable[[], None] = lambda: None
        self._stop_now = asyncio.Event()
        self._closed: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the runners and begin to claim.

        Raises:
            RunnerFailed: a runner cannot run the app; the message says why in one sentence.
        """
        await self._placement.shared.start()
        self._stop_listening = self._parts.store.listen(self._hint)
        self._tasks = [
            asyncio.create_task(self._claims.run(), name="coatcheck-claims"),
            asyncio.create_task(self._heartbeats.run(), name="coatcheck-heartbeats"),
        ]
        settings = self._parts.settings
        self._log.info("worker_started", runners=settings.runners, concurrency=settings.concurrency)

    async def drain(self, grace_s: float) -> None:
        """Claim nothing more, let running attempts finish for `grace_s` seconds, then give the rest back uncounted.

        `stop` cuts it short. The grace includes a last part in which handlers are told to stop.
        """
        if self._closed is None:
            self._closed = asyncio.create_task(self._close(grace_s))
        await asyncio.shield(self._closed)

    async def stop(self) -> None:
        """Give everything back at once, uncounted, and end the runners."""
        self._stop_now.set()
        await self.drain(0.0)

    async def _close(self, grace_s: float) -> None:
        self._claims.stop()
        self._attempts.release_waiting()
        stop_s = min(grace_s * STOP_SHARE, STOP_S_MAX)
        await self._wait_for_handlers(grace_s - stop_s)
        self._attempts.ask_all()
        await self._wait_for_handlers(stop_s)
        self._log.info("worker_stopping", given_back=len(self._ledger.in_phase(Phase.RUNNING)))
        # Killed before their jobs are given back: no handler overlaps the next start of its job.
        await self._end_runners()
        await self._await_claims()
        if not await self._ledger.wait_empty(GIVE_BACK_S):
            self._log.warning("leases_left", jobs=[attempt.job.id for attempt in self._ledger.all()])
        await self._asks.give_up()
        await self._finisher.give_up()
        self._stop_listening()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait_for_handlers(self, timeout_s: float) -> None:
        """Until nothing runs any more, the time is over, or `stop` is called."""
        if timeout_s <= 0:
            return
        loop = asyncio.get_running_loop()
        idle = loop.create_task(self._ledger.wait_empty(timeout_s))
        stopped = loop.create_task(self._stop_now.wait())
        await asyncio.wait({idle, stopped}, return_when=asyncio.FIRST_COMPLETED)
        for task in (idle, stopped):
            task.cancel()
        await asyncio.gather(idle, stopped, return_exceptions=True)

    async def _end_runners(self) -> None:
        for runner in (*self._placement.shared.runners, *self._placement.solo.runners):
            if runner.held or runner.deaf:
                runner.kill()
        await asyncio.gather(self._placement.shared.close(QUIT_S), self._placement.solo.close(QUIT_S))

    async def _await_claims(self) -> None:
        """The claim that may be under way brings jobs that are given back."""
        claims = self._tasks[:1]
        if claims:
            await asyncio.wait(claims, timeout=GIVE_BACK_S)

    def _hint(self, wake_up: WakeUp) -> None:
        self._claims.hint(wake_up)
        self._heartbeats.hint(wake_up)

    def _make_runner(self, is_solo: bool) -> RunnerProcess:
        settings = self._parts.settings
        spec = RunnerSpec(
            app_ref=self._parts.app_ref,
            concurrency=1 if is_solo else settings.concurrency,
            is_solo=is_solo,
            import_timeout_s=settings.import_timeout_s,
            log_format=settings.log_format,
            log_level=settings.log_level,
        )
        return RunnerProcess(next(self._numbers), spec, self._attempts)
