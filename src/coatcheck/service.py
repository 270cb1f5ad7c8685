"""Service: an app with settings, ready to be served, mounted or called. Thin: the runtime does the work."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Unpack, assert_never

from starlette.types import ASGIApp, Receive, Scope, Send

from coatcheck.admission.budgets import budget_exceeded
from coatcheck.admission.calls import SubmitOptions, admit_call
from coatcheck.admission.identity import DEFAULT_TENANT
from coatcheck.admission.modes import require_taking
from coatcheck.admission.queue_full import jobs_too_many, queue_full
from coatcheck.app import App
from coatcheck.core.costs import OverBudget
from coatcheck.core.job import JobRecord
from coatcheck.core.problems import Refused
from coatcheck.observe.logs import configure_logging
from coatcheck.runtime import Runtime
from coatcheck.serving import run_until_stopped
from coatcheck.settings import Settings
from coatcheck.store.records import Accepted, KeyConflict, KeyOfExpiredJob, QueueFull, Replayed


class Service:
    """An app, its settings and one process's share of the work.

        Service(app).run()                                  # a process of its own
        Starlette(routes=[Mount("/jobs", Service(app).asgi())])     # below another app
        await Service(app).submit("reports", {"branch": "leeds"})   # from code

    Mounted below another app, the service starts and stops with `lifespan`; an app that forwards no lifespan events
    may leave that out, and the service then starts at its first request. Leases left behind are taken over by
    whichever process cleans up. Runners run below this process unless `roles` leaves `worker` out. Who may reach a
    mounted service is the outer app's decision.

    Args:
        app: the operations.
        settings: read from the environment and `coatcheck.toml` when left out.
        app_ref: "module:attribute" where runners find the app, if it cannot be found by itself.

    Raises:
        SettingsError: a setting cannot hold.
        StartRefused: runners could not find the app.
    """

    def __init__(self, app: App, settings: Settings | None = None, *, app_ref: str | None = None) -> None:
        self.app = app
        self.settings = Settings() if settings is None else settings
        self._runtime = Runtime(app, self.settings, app_ref)
        self._starting = asyncio.Lock()
        self._is_started = False

    def asgi(self) -> ASGIApp:
        """The service as an ASGI app, with its own lifespan, to be mounted or served by any ASGI server."""
        return _Mounted(self, self._runtime)

    def run(self) -> int:
        """Serve until the process is told to stop; returns its exit code. Configures logging for the process.

        Raises:
            StartRefused: the port, the store or the settings forbid it.
        """
        configure_logging(self.settings.log_format, self.settings.log_level)
        return run_until_stopped(self._runtime, lambda url: None)

    async def start(self) -> None:
        """Start the roles of this process, once; later calls do nothing.

        Raises:
            StartRefused: the store or a runner cannot be used.
        """
        async with self._starting:
            if not self._is_started:
                await self._runtime.start()
                self._is_started = True

    async def stop(self) -> None:
        """Drain, within the grace time, and end. A service that was stopped does not start again."""
        async with self._starting:
            if self._is_started:
                await self._runtime.drain()
                await self._runtime.stop()

    @asynccontextmanager
    async def lifespan(self, outer: Any = None) -> AsyncIterator[None]:
        """The service's life as a context manager, such as the `lifespan` of a Starlette or FastAPI app."""
        await self.start()
        try:
            yield
        finally:
            await self.stop()

    async def submit(
        self, operation: str, request: Any, *, connection: Any = None, **options: Unpack[SubmitOptions]
    ) -> JobRecord:
        """Hand in work as the HTTP edge does: durable when it returns, or with the caller's own transaction.

        Args:
            operation: its name.
            request: an object of the operation's request type, anything that makes the same JSON, or the JSON itself
                as bytes.
            connection: of asyncpg, or an AsyncConnection of psycopg, to the store's database, with a transaction open.
                The job is there when that commits, and never was if it does not.

        Raises:
            Refused: with the problem code a client would be answered with.
            StoreUnavailable: the store is away. Nothing was written, unless PostgreSQL went away in the midst of the
                commit: submit again with the same idempotency key.
            KeyError: there is no such operation.
            TypeError, ValueError: the job cannot be handed in on this connection, the tenant cannot be one, or the
                request makes no JSON.
        """
        declared = self.app.operations[operation]
        await self.start()
        if self._runtime.draining.has_begun:
            raise Refused("draining", "This process is shutting down and accepts no new work.")
        acceptance, tenant = self._runtime.acceptance, options.get("tenant", DEFAULT_TENANT)
        await require_taking(self._runtime.directory, operation, tenant)
        admitted = admit_call(declared, request, options, self._runtime.clock.now())
        if connection is None:
            disposition = await acceptance.accept(declared, admitted, tenant)
        else:
            disposition = await acceptance.hand_in(declared, admitted, tenant, connection)
        if isinstance(disposition, QueueFull):
            wait_s = self._runtime.estimates.room_after_s(operation, jobs_too_many(disposition))
            raise queue_full(disposition, wait_s)
        if isinstance(disposition, OverBudget):
            raise budget_exceeded(disposition, self._runtime.clock.now())
        return _accepted_job(disposition)

    def render_metrics(self) -> tuple[bytes, str]:
        """This process's metrics in the Prometheus text format, and its content type."""
        return self._runtime.metrics.render()


def _accepted_job(disposition: Accepted | Replayed | KeyConflict | KeyOfExpiredJob) -> JobRecord:
    match disposition:
        case Accepted(job) | Replayed(job):
            return job
        case KeyConflict():
            raise Refused("idempotency-key-reused", "The idempotency key was used for another body.")
        case KeyOfExpiredJob():
            raise Refused("job-expired", "The job of this idempotency key has expired.", status=409)
        case _:
            assert_never(disposition)


class _Mounted:
    """A service as an ASGI app: starts with its lifespan, or at its first request where none is forwarded."""

    def __init__(self, service: Service, runtime: Runtime) -> None:
        self._service = service
        self._runtime = runtime
        self._edge: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if self._edge is None:
            await self._service.start()
            self._edge = self._runtime.asgi()
        await self._edge(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._service.start()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._service.stop()
        await send({"type": "lifespan.shutdown.complete"})
