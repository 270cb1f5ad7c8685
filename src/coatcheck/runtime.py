"""The composition root: settings and an app become a store, the rooms this process plays, and an ASGI app.

Only this module and `operating` know an engine. `start` opens the store first and the API last; `drain` stops taking
work and lets what runs come to its end; `stop` ends everything.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Protocol, TypeVar

from starlette.types import ASGIApp

from coatcheck.acceptance.acceptance import Acceptance
from coatcheck.admission.budgets import windows_of
from coatcheck.admission.directory import Directory
from coatcheck.admission.key_sets import KeySetUnavailable
from coatcheck.admission.limit_defaults import limit_defaults
from coatcheck.admission.parts import make_admission
from coatcheck.admitting import make_buckets
from coatcheck.app import App
from coatcheck.authenticating import ExtraMissing, make_authentication
from coatcheck.completion.estimates import Estimates, RetryBounds
from coatcheck.completion.events.channel import ChannelRefused
from coatcheck.completion.events.file import FileChannel
from coatcheck.completion.relay import Relay, RelayParts
from coatcheck.completion.start_checks import StartChecks
from coatcheck.completion.watch import JobWatch
from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.execution.parts import WorkerParts, WorkerSettings
from coatcheck.execution.runner_process import RunnerFailed
from coatcheck.execution.worker import Worker
from coatcheck.http.app import build_asgi
from coatcheck.http.draining import DrainState
from coatcheck.http.services import HttpServices
from coatcheck.observe.logs import get_logger
from coatcheck.observe.metrics import Metrics
from coatcheck.settings import Settings
from coatcheck.store.clock import Clock, Machine, SystemClock
from coatcheck.store.contract import Store
from coatcheck.store.errors import StoreRefused, StoreUnavailable
from coatcheck.store.records import WakeUp, WakeUpKind
from coatcheck.stores.postgres.config import PostgresConfig
from coatcheck.stores.postgres.database_wall import DatabaseWall
from coatcheck.stores.sqlite.clock_file import ClockFile
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from coatcheck.testing.faults import crash_at
from coatcheck.upkeep.loop import Upkeep, UpkeepParts

_Made = TypeVar("_Made")
_log = get_logger(__name__)


class StartRefused(Exception):
    """The process must not start like this; the message says why, and what to do, in one sentence."""


class Runtime:
    """One process's share of the service.

    Args:
        app: the operations.
        settings: frozen; the role decides which parts exist.
        app_ref: "module:attribute", where runner processes find the app; found by itself when the app is an
            attribute of an imported module.
        clock: the time of everything in this process.
        fault_point: for tests.

    Raises:
        StartRefused: the app cannot be found by runner processes, and this process would have them; or the store's
            driver, or the client of limits_store, is not installed.
    """

    def __init__(
        self,
        app: App,
        settings: Settings,
        app_ref: str | None = None,
        clock: Clock | None = None,
        fault_point: FaultPoint = no_fault,
    ) -> None:
        self.app = app
        self.settings = settings
        self.metrics = Metrics()
        self._wall = DatabaseWall()
        self.clock: Clock = _make_clock(settings, self._wall) if clock is None else clock
        self.draining = DrainState()
        self._fault_point = fault_point_of(settings, fault_point)
        self._app_ref = _checked_ref(app, app_ref) if "worker" in settings.roles else ""
        self.store: Store = self._make_store()
        self.directory = Directory(self.store, self.clock, limit_defaults(settings, app), windows_of(settings, app))
        buckets = _or_refused(lambda: make_buckets(settings, app.name, self.clock, self.metrics))
        self._admission = make_admission(self.directory, buckets, self.store, self.clock)
        self.acceptance = Acceptance(
            self.store, self.clock, self._admission.gate, self._fault_point, self.directory.current_terms
        )
        self._watch = JobWatch(self.store, self.clock)
        bounds = RetryBounds(settings.retry_after_min_s, settings.retry_after_max_s)
        self.estimates = Estimates(self.store, self._admission.measures, self._admission.forecasts, self.clock, bounds)
        self._start_checks = StartChecks(self.store, self.clock, self.metrics)
        self._authentication = _or_refused(
            lambda: make_authentication(settings, self.store, self.directory, self.clock)
        )
        self._worker: Worker | None = None
        self._relay: Relay | None = None
        self._upkeep: Upkeep | None = None
        self._is_open = False
        self._unlisten: Callable[[], None] = lambda: None
        self.draining.on_begin(self._watch.stop)
        # A wait may be somebody's whose key was just revoked.
        self.directory.on_change(self._watch.wake_all)

    async def start(self) -> None:
        """Open the store and begin every role but the API, which begins when its ASGI app is called.

        Raises:
            StartRefused: the store, the events channel or a runner cannot be used.
        """
        try:
            await self.store.open()
            self._is_open = True
            self._unlisten = self.store.listen(self._hear)
            await self.directory.start()
            self._admission.start()
            await self._start_roles()
        except KeySetUnavailable as error:
            await self._end_parts()
            raise StartRefused(f"jwt_keys: {error}.") from error
        except (StoreRefused, StoreUnavailable, ChannelRefused, RunnerFailed) as error:
            await self._end_parts()
            raise StartRefused(str(error)) from error
        except BaseException:
            await self._end_parts()
            raise

    def asgi(self) -> ASGIApp:
        """The HTTP edge of this process."""
        return build_asgi(
            HttpServices(
                app=self.app,
                store=self.store,
                acceptance=self.acceptance,
                watch=self._watch,
                estimates=self.estimates,
                start_checks=self._start_checks,
                metrics=self.metrics,
                settings=self.settings,
                directory=self.directory,
                draining=self.draining,
                rates=self._admission.rates,
                fault_point=self._fault_point,
                authentication=self._authentication,
            )
        )

    async def drain(self) -> None:
        """Take nothing new, and let running jobs end within the grace time; the rest are given back uncounted."""
        self.draining.begin()
        if self._worker is not None:
            await self._worker.drain(self.settings.grace_s)

    async def stop(self) -> None:
        """End every part, the store last. What fails in one is logged and keeps none of the others from ending."""
        self.draining.begin()
        await self._end_parts()

    async def _start_roles(self) -> None:
        roles = self.settings.roles
        if "api" in roles:
            self._start_checks.start()
            await self._authentication.start()
        if "upkeep" in roles:
            self._upkeep = Upkeep(self._upkeep_parts())
            self.directory.on_change(self._upkeep.look_at_turns)
            self._upkeep.start()
        if "relay" in roles and self.settings.events_path is not None:
            channel = FileChannel(self.settings.events_path, self.app.name)
            self._relay = Relay(RelayParts(self.store, channel, self.metrics, self.clock, self._fault_point))
            await self._relay.start()
        if "worker" in roles:
            self._worker = self._make_worker(self._worker_parts())
            await self._worker.start()

    async def _end_parts(self) -> None:
        # The worker goes first: the others tell and clean up what its end brings about.
        for part in (self._worker, self._relay, self._upkeep):
            if part is not None:
                await _end(part)
        self._worker = self._relay = self._upkeep = None
        await _end(self._start_checks)
        await _end(self._admission)
        await _end(self._authentication)
        self._unlisten()
        await _end(self.directory)
        if self._is_open:
            self._is_open = False
            await self.store.close()

    def _hear(self, wake_up: WakeUp) -> None:
        if wake_up.kind is WakeUpKind.CONTROLS:
            self.directory.wake()

    def _make_store(self) -> Store:
        settings = self.settings
        path = settings.store_path
        if path is None:
            return self._make_postgres_store()
        config = SqliteConfig(
            path=path,
            app_name=self.app.name,
            lease_s=settings.lease_s,
            events=settings.events is not None,
            observe_commit=self._observe_commit,
            may_migrate=settings.migrate,
        )
        return SqliteStore(config, self.clock, self._fault_point)

    def _make_postgres_store(self) -> Store:
        settings = self.settings
        config = PostgresConfig(
            dsn=settings.store,
            app_name=self.app.name,
            listen_dsn=settings.listen_dsn,
            connections=settings.postgres_connections,
            is_pooled=settings.postgres_pooler is not None,
            lease_s=settings.lease_s,
            events=settings.events is not None,
            observe_commit=self._observe_commit,
            wall=self._wall,
            may_migrate=settings.migrate,
        )
        engine: Callable[..., Store] = load_engine("postgres", "store", "PostgreSQL").PostgresStore
        return engine(config, self.clock, self._fault_point)

    def _make_worker(self, parts: WorkerParts) -> Worker:
        return Worker(parts)

    def _observe_commit(self, members: int, seconds: float) -> None:
        self.metrics.observe("commit_batch_size", members)
        self.metrics.observe("commit_seconds", seconds)

    def _upkeep_parts(self) -> UpkeepParts:
        return UpkeepParts(
            store=self.store,
            policies=self.app.policies,
            metrics=self.metrics,
            clock=self.clock,
            interval_s=self.settings.upkeep_interval_s,
            lease_s=self.settings.lease_s,
            inbox_interval_s=self.settings.inbox_interval_s,
            terms=self.directory.current_terms,
        )

    def _worker_parts(self) -> WorkerParts:
        settings = self.settings
        return WorkerParts(
            store=self.store,
            app=self.app,
            app_ref=self._app_ref,
            settings=WorkerSettings(
                runners=settings.workers,
                concurrency=settings.concurrency,
                solo_runners=settings.solo_runners,
                lease_s=settings.lease_s,
                heartbeat_s=settings.heartbeat_s,
                cancel_grace_s=settings.cancel_grace_s,
                log_format=settings.log_format,
                log_level=settings.log_level,
            ),
            metrics=self.metrics,
            clock=self.clock,
            directory=self.directory,
            fault_point=self._fault_point,
        )


def _or_refused(make: Callable[[], _Made]) -> _Made:
    try:
        return make()
    except ExtraMissing as error:
        raise StartRefused(str(error)) from error


def _make_clock(settings: Settings, wall: DatabaseWall) -> Clock:
    """Processes of one machine agree on the time by a file; those that share a database, by the database's clock."""
    path = settings.store_path
    if path is None:
        return SystemClock(None, _tell_step, Machine(wall_ns=wall.wall_ns))
    return SystemClock(ClockFile(path.with_name(f"{path.name}-clock")), _tell_step)


def fault_point_of(settings: Settings, fault_point: FaultPoint = no_fault) -> FaultPoint:
    """The fault point that the settings name, or the one given."""
    return fault_point if settings.crash_at is None else crash_at(settings.crash_at)


def load_engine(name: str, part: str, product: str) -> ModuleType:
    """A module of an engine whose driver is an extra, loaded only where it is used.

    Raises:
        StartRefused: the extra is not installed.
    """
    try:
        return import_module(f"coatcheck.stores.{name}.{part}")
    except ModuleNotFoundError as error:
        raise StartRefused(
            f"The store is on {product}, and its driver {error.name} is not installed; install coatcheck[{name}]."
        ) from error


def _tell_step(seconds: float) -> None:
    log = _log.warning if abs(seconds) >= 1 else _log.debug
    log("clock_set", seconds=round(seconds, 3))


class _Part(Protocol):
    async def stop(self) -> None: ...


async def _end(part: _Part) -> None:
    try:
        await part.stop()
    except Exception as error:
        _log.error("not_stopped", part=type(part).__name__, exc_info=error)


def find_app_ref(app: App) -> str:
    """Where runner processes can import the app: "module:attribute".

    Raises:
        StartRefused: no imported module holds it under a name, or only the script that was started does.
    """
    homes = {operation.handler.__module__ for operation in app.operations.values()}
    # The module that declares the operations is a better name for the app than one that imports it.
    modules = sorted(sys.modules.items(), key=lambda item: item[0] not in homes)
    for name, module in modules:
        attribute = _attribute_of(module, app)
        importable = _importable_name(name, module)
        if attribute is not None and importable is not None:
            return f"{importable}:{attribute}"
    if _attribute_of(sys.modules.get("__main__"), app) is not None:
        raise StartRefused(
            f"App {app.name!r} is defined in the script that was started, where runner processes cannot import it; move"
            " it into a module, or start it with `coatcheck serve MODULE:APP`."
        )
    raise StartRefused(
        f'App {app.name!r} is no attribute of an imported module; pass app_ref="module:attribute" to say where runner'
        " processes find it."
    )


def _checked_ref(app: App, app_ref: str | None) -> str:
    return find_app_ref(app) if app_ref is None else app_ref


def _attribute_of(module: ModuleType | None, app: App) -> str | None:
    names = getattr(module, "__dict__", {})
    found = (name for name, value in list(names.items()) if value is app)
    return next(found, None)


def _importable_name(name: str, module: ModuleType) -> str | None:
    """The name another process imports the module by. The module started with `python -m` has it in its spec."""
    if name != "__main__":
        return name
    spec = module.__spec__
    return None if spec is None else spec.name
