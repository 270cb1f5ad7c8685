"""Connections that belong to a caller: one statement is run on them, in the transaction that is open there."""

from typing import Any

from coatcheck.stores.postgres.placeholders import with_percent_s
from coatcheck.stores.postgres.rows import Row

_IDLE = 0


async def run_on(connection: Any, statement: str, values: Row) -> None:
    """Run a statement on a connection of asyncpg or psycopg. Its failures are the caller's own.

    Raises:
        TypeError: the connection is of another kind.
        ValueError: no transaction is open on it, so that what is written could not be taken back.
    """
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(connection).__mro__}
    if kinds & {("asyncpg", "Connection"), ("asyncpg", "PoolConnectionProxy")}:
        _check(connection.is_in_transaction())
        await connection.execute(statement, *values)
    elif ("psycopg", "AsyncConnection") in kinds:
        # Without autocommit, psycopg begins a transaction by itself.
        _check(not connection.autocommit or connection.info.transaction_status != _IDLE)
        await connection.execute(with_percent_s(statement), values)
    else:
        raise TypeError(
            f"connection is {type(connection).__name__}, but it must be one of asyncpg or an AsyncConnection of"
            " psycopg; with anything else, run the statement of coatcheck.postgres.submission."
        )


def _check(is_in_transaction: bool) -> None:
    if not is_in_transaction:
        raise ValueError("connection has no open transaction; begin one, so that the job commits with your own rows.")
