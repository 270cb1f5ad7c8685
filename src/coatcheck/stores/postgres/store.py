"""The shared store: the engine's parts as one object, opened and closed as a whole."""

import itertools
from collections.abc import Callable
from contextlib import AsyncExitStack

from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.observe.logs import get_logger
from coatcheck.observe.rounds import Rounds
from coatcheck.store.clock import Clock, SystemClock
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import WakeUp
from coatcheck.stores.postgres.acceptance import Acceptances, accept, accept_counted
from coatcheck.stores.postgres.claims import Claiming, claim_all, finish, keep, record_effects
from coatcheck.stores.postgres.commands import Commands
from coatcheck.stores.postgres.config import PostgresConfig
from coatcheck.stores.postgres.connection import connect, fetch, store_errors
from coatcheck.stores.postgres.connections import Connections
from coatcheck.stores.postgres.controls import Controlling
from coatcheck.stores.postgres.costs import Costs, spend_all
from coatcheck.stores.postgres.database_wall import LOOK_INTERVAL_S, DatabaseWall
from coatcheck.stores.postgres.inbox import Inbox
from coatcheck.stores.postgres.lease_watch import LeaseWatch
from coatcheck.stores.postgres.operating import Operating
from coatcheck.stores.postgres.outbox import Outbox, RelayTurn
from coatcheck.stores.postgres.readers import Readers
from coatcheck.stores.postgres.reading import Reading
from coatcheck.stores.postgres.revoking import Revoking
from coatcheck.stores.postgres.schema import MIGRATION_S_MAX, migrate
from coatcheck.stores.postgres.transaction import Transactions
from coatcheck.stores.postgres.upkeep import Sweeping
from coatcheck.stores.postgres.wakeups import WakeUps
from coatcheck.stores.postgres.writer import Writer, WriterParts


class PostgresStore(
    Acceptances, Claiming, Costs, Reading, Commands, Outbox, Sweeping, Controlling, Operating, Revoking, Inbox
):
    """One PostgreSQL database as a Store.

    Any number of processes may open it. All of an object belongs to the event loop on which `open` was awaited.
    """

    def __init__(self, config: PostgresConfig, clock: Clock | None = None, fault_point: FaultPoint = no_fault) -> None:
        self.clock = clock or SystemClock()
        self._config = config
        self._fault_point = fault_point
        self._watch = LeaseWatch(config.lease_s, self.clock)
        self._rounds = itertools.count()
        self._keeping = set()
        self._log = get_logger("store")

    async def open(self) -> None:
        config = self._config
        await self._migrate()
        async with AsyncExitStack() as opened:
            self._connections = Connections(config, self.clock)
            opened.push_async_callback(self._connections.close)
            self._wakeups = WakeUps(config.listen_dsn)
            opened.push_async_callback(self._wakeups.close)
            await self._wakeups.open()
            self._transactions = Transactions(
                self._connections, self._wakeups.publish, config.events, config.is_pooled, self._fault_point
            )
            if config.wall is not None:
                looks = self._looks_at_clock(config.wall)
                looks.start()
                opened.push_async_callback(looks.stop)
            self._relay_turn = RelayTurn(self._transactions, self.clock, config.lease_s)
            opened.push_async_callback(self._leave_relay_turn)
            self._readers = Readers(self._transactions)
            opened.push_async_callback(self._readers.close)
            parts = WriterParts(self._transactions, self.clock, config.observe_commit)
            self._work = Writer(parts, (keep, finish, record_effects, claim_all))
            opened.push_async_callback(self._work.close)
            self._claims = Writer(parts, (claim_all,))
            opened.push_async_callback(self.turns_kept)
            opened.push_async_callback(self._claims.close)
            self._spends = Writer(parts, (spend_all,))
            opened.push_async_callback(self._spends.close)
            self._intake = Writer(parts, (accept,), is_one_statement=True)
            opened.push_async_callback(self._intake.close)
            self._limited_intake = Writer(parts, (accept_counted,))
            opened.push_async_callback(self._limited_intake.close)
            self._opened = opened.pop_all()

    async def close(self) -> None:
        await self._opened.aclose()

    def listen(self, callback: Callable[[WakeUp], None]) -> Callable[[], None]:
        """See WakeUpSource."""
        return self._wakeups.listen(callback)

    async def _migrate(self) -> None:
        connection = await connect(self._config.dsn, self._config.is_pooled, MIGRATION_S_MAX)
        try:
            with store_errors():
                if self._config.wall is not None:
                    await self._config.wall.look(lambda: fetch(connection, "read_clock"))
                await migrate(connection, self._config.app_name, self._fault_point, self._config.may_migrate)
        finally:
            connection.terminate()

    def _looks_at_clock(self, wall: DatabaseWall) -> Rounds:
        async def look() -> float:
            await wall.look(lambda: self._transactions.read("read_clock"))
            return LOOK_INTERVAL_S

        return Rounds("database-clock", look)

    async def _leave_relay_turn(self) -> None:
        try:
            await self._relay_turn.leave()
        except StoreUnavailable:
            self._log.info("relay_turn_not_left")
