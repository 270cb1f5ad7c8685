"""One connection: settings every session has, the reasons not to use a server, and what its failures mean."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import asyncpg

from coatcheck.store.errors import StoreRefused, StoreUnavailable
from coatcheck.stores.postgres.rows import Row
from coatcheck.stores.postgres.statements import sql

if TYPE_CHECKING:
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]
else:
    # Generic only where types are checked.
    Connection = asyncpg.Connection

OLDEST_POSTGRES = 140_000
STATEMENTS_KEPT = 200
CONNECT_S_MAX = 10.0
COMMAND_S_MAX = 30.0

SESSION = {
    "search_path": "coatcheck",
    # Waiting tables are empty one minute and full the next: a plan made from yesterday's statistics would read them
    # through. Every statement here finds its rows by an index, so that is the only plan there is, and made once.
    "enable_seqscan": "off",
    # It reads all that fit before it sorts them and takes a few: a whole queue for each claim.
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    # A process that was stopped in the middle must not keep others from what it had locked: those who wait for it get
    # it before they give up.
    "idle_in_transaction_session_timeout": "5s",
    "lock_timeout": "10s",
    "statement_timeout": "25s",
}
_DURABLE = """
SELECT set_config(
    'synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), true
)
"""
SESSION_OF_TRANSACTION = "; ".join([*(f"SET LOCAL {name} = '{value}'" for name, value in SESSION.items()), _DURABLE])
"""The same for behind a pooler, where a session is nobody's beyond a transaction: another of its users may have told it
that commits need not be durable."""

DRIVER_ERRORS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # Between the server's last words and the end of the line.
    asyncpg.InternalClientError,
)
"""All that the loss of a session may be told by."""

_UNAVAILABLE = (
    asyncpg.PostgresConnectionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    asyncpg.InternalServerError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.LockNotAvailableError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
    TimeoutError,
)
_TOO_LONG = (
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
_HOW_TO_WRITE = "write postgresql://user:password@host:port/database, and in the password %2F for / and %3F for ?"
_CONFLICTS = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


def is_unavailable(error: BaseException) -> bool:
    """Whether this failure is the server's or the line's rather than one statement's."""
    # A value that the driver cannot send is an InterfaceError too, and the fault of whoever gave it.
    return isinstance(error, _UNAVAILABLE) and not isinstance(error, asyncpg.DataError)


def is_away(error: BaseException) -> bool:
    """Whether this failure is of the server or the line, and not of one statement that waited or ran for too long."""
    return is_unavailable(error) and not isinstance(error, _TOO_LONG)


def is_conflict(error: BaseException) -> bool:
    """Whether the transaction lost against another and may simply be run again."""
    return isinstance(error, _CONFLICTS)


def unavailable(error: BaseException) -> StoreUnavailable:
    """The same failure in the words of the port. Never the DSN: it may hold a password."""
    return StoreUnavailable(f"PostgreSQL: {str(error) or type(error).__name__}")


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn the failures of the server and of the line into StoreUnavailable."""
    try:
        yield
    except Exception as error:
        if is_unavailable(error) or is_conflict(error):
            raise unavailable(error) from error
        raise


async def connect(dsn: str, is_pooled: bool = False, command_s_max: float = COMMAND_S_MAX) -> Connection:
    """A connection to a server on which an answered commit survives. No command on it takes longer than is said.

    Raises:
        StoreRefused: the URL is wrong, or the server is too old or set up to lose commits.
        StoreUnavailable: it cannot be reached, or cannot be written to now.
    """
    try:
        connection = await asyncpg.connect(
            dsn,
            timeout=CONNECT_S_MAX,
            command_timeout=command_s_max,
            # A pooler hands the next transaction to another session, which knows no statement of this one.
            statement_cache_size=0 if is_pooled else STATEMENTS_KEPT,
            max_cached_statement_lifetime=0,
            server_settings=None if is_pooled else {"application_name": "coatcheck", **SESSION},
        )
    except asyncpg.ClientConfigurationError as error:
        raise StoreRefused(f"store: the PostgreSQL URL is wrong: {error}.") from error
    except DRIVER_ERRORS as error:
        raise StoreUnavailable(f"store: {_server(dsn)}: {str(error) or type(error).__name__}") from error
    except (ValueError, OverflowError):
        # The driver's own words may hold a part of the password, and so does the traceback.
        raise StoreRefused(f"store: the PostgreSQL URL cannot be read; {_HOW_TO_WRITE}.") from None
    try:
        with store_errors():
            await _check_server(connection, is_pooled)
    except BaseException:
        connection.terminate()
        raise
    return connection


def _server(dsn: str) -> str:
    """The server a URL leads to, as far as it says, without who comes and with what password."""
    place = dsn.partition("://")[2].partition("?")[0].rpartition("@")[2].partition("/")[0]
    return f"PostgreSQL at {place}" if place else "PostgreSQL"


async def fetch(connection: Connection, statement: str, *values: Any, timeout_s: float | None = None) -> Sequence[Row]:
    """The rows of a statement of sql/."""
    # A Record is no tuple to the type checker, though it is one to everybody who takes it apart.
    return cast("Sequence[Row]", await connection.fetch(sql(statement), *values, timeout=timeout_s))


async def _check_server(connection: Connection, is_pooled: bool) -> None:
    """See what the server is, and pin what its commits are worth to a session of our own."""
    ((number, version, synchronous_commit, fsync, is_standby),) = await fetch(connection, "look_at_server", is_pooled)
    if number < OLDEST_POSTGRES:
        raise StoreRefused(f"store: PostgreSQL {version} is too old; use 14 or later.")
    for name, value in (("synchronous_commit", synchronous_commit), ("fsync", fsync)):
        if value == "off":
            raise StoreRefused(f"store: {name} is off on this PostgreSQL, which would lose accepted jobs; turn it on.")
    if is_standby:
        raise StoreUnavailable("PostgreSQL: this server is a standby; nothing can be written here.")
