"""A node of a story: one process of the service after another, each with the real composition root."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from starlette.types import ASGIApp

from coatcheck.app import App
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.worker import Worker
from coatcheck.runtime import Runtime, StartRefused
from coatcheck.settings import Settings
from coatcheck.store.clock import Machine, SystemClock
from coatcheck.store.contract import Store
from coatcheck.stores.sqlite.clock_file import ClockFile
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.testing.simulation_loop import Life, SimulatedLoop, SimulatedProcess

from .sim_app import LEASE_S
from .sim_faults import NodeFaults
from .sim_record import Record
from .sim_runner import RunnerHome, SimulatedWorker
from .sim_store import SimulatedStore

UPTIME_AT_START_NS = 86_400 * 1_000_000_000
BOOT = "story"


class Site:
    """What all nodes of a story share: a machine with its clocks, one store, one app."""

    def __init__(self, loop: SimulatedLoop, folder: Path, seed: str, start_ms: int) -> None:
        self.loop = loop
        self.folder = folder
        self.seed = seed
        self.path = folder / "story.db"
        self.events_path = folder / "events.jsonl"
        self.passed: Counter[str] = Counter()
        self.wall_step_ns = 0
        self._start_ns = start_ms * 1_000_000
        self.record = Record(loop, self.clock())

    def clock(self) -> SystemClock:
        """The clock of a new process: the product's own, on this machine."""
        keeper = ClockFile(self.path.with_name("story.db-clock"), BOOT)
        return SystemClock(keeper, machine=Machine(self._wall_ns, self._running_ns, self.loop.time))

    def random(self, purpose: str) -> Random:
        """A stream of its own for each purpose, so that one more draw here changes nothing there."""
        return Random(f"{self.seed}/{purpose}")  # noqa: S311 - repeatable on purpose

    def _wall_ns(self) -> int:
        return self._start_ns + round(self.loop.time() * 1e9) + self.wall_step_ns

    def _running_ns(self) -> int:
        return UPTIME_AT_START_NS + round(self.loop.time() * 1e9)


class SimulatedRuntime(Runtime):
    """The composition root with a simulated store and simulated runners."""

    def __init__(self, node: "Node", app: App, settings: Settings) -> None:
        self._node = node
        self.simulated_store: SimulatedStore
        self.has_stopped = False
        super().__init__(app, settings, "simulated:app", node.site.clock(), node.faults.pass_point)

    def _make_store(self) -> Store:
        site, settings = self._node.site, self.settings
        assert settings.store_path is not None, "the simulated store is SQLite's"
        config = SqliteConfig(settings.store_path, self.app.name, settings.lease_s, events=True)
        random = site.random(f"store {self._node.process.name}")
        self.simulated_store = SimulatedStore(config, self.clock, self._node.faults, random, site.record)
        return self.simulated_store

    def _make_worker(self, parts: WorkerParts) -> Worker:
        random = self._node.site.random(f"runners {self._node.process.name}")
        self._node.home = RunnerHome(self._node.process, self.app, self._node.site.record, random)
        return SimulatedWorker(parts, self._node.home)


class Node:
    """One place where the service runs. `asgi` is None while nobody answers there."""

    def __init__(self, site: Site, name: str, roles: tuple[str, ...], make_app: Callable[[Record], App]) -> None:
        self.site = site
        self.name = name
        self.roles = roles
        self.asgi: ASGIApp | None = None
        self.home: RunnerHome | None = None
        self.runtime: SimulatedRuntime | None = None
        self.process: SimulatedProcess
        self.faults: NodeFaults
        self.processes: list[SimulatedProcess] = []
        self._make_app = make_app
        self._lives = 0
        self._is_stopping = False

    @property
    def is_alive(self) -> bool:
        return bool(self.processes) and self.process.life is not Life.DEAD

    def start(self, lost_share: float) -> None:
        """Start the next process."""
        self._lives += 1
        self._is_stopping = False
        self.process = SimulatedProcess(self.site.loop, f"{self.name}-{self._lives}")
        self.processes.append(self.process)
        self.faults = NodeFaults(self.process.kill, lost_share, self.site.passed)
        self.process.run(self._live())
        self.site.record.tell(f"{self.process.name} starts")

    def stop(self) -> None:
        """SIGTERM; a second one changes nothing."""
        if not self._is_stopping:
            self._is_stopping = True
            self.process.run(self._drain())

    async def _live(self) -> None:
        site = self.site
        settings = Settings(
            store=f"sqlite:///{site.path}",
            roles=self.roles,
            events=f"file:{site.events_path}",
            workers=1,
            lease_s=LEASE_S,
            concurrency=3,
            grace_s=5.0,
            cancel_grace_s=10.0,
            upkeep_interval_s=2.0,
        )
        self.runtime = runtime = SimulatedRuntime(self, self._make_app(site.record), settings)
        # From here on the process holds files that the kernel must close for it.
        self.process.at_end(self._gone(runtime))
        try:
            await runtime.start()
        except StartRefused as error:
            site.record.tell(f"{self.process.name} cannot start: {error}")
            self.process.kill()
            return
        if "api" in self.roles:
            self.asgi = runtime.asgi()

    async def _drain(self) -> None:
        runtime = self.runtime
        if runtime is not None:
            await runtime.drain()
            self.asgi = None
            await runtime.stop()
            runtime.has_stopped = True
        self.process.kill()

    def _gone(self, runtime: SimulatedRuntime) -> Callable[[], None]:
        name = self.process.name

        def let_go() -> None:
            self.asgi, self.runtime = None, None
            self.site.record.tell(f"{name} is gone")
            if not runtime.has_stopped:
                runtime.simulated_store.sever()

        return let_go
