"""Where an open job waits, and how it leaves: ready or scheduled, and the turns kept beside ready."""

from collections.abc import Iterable, Mapping, Sequence

from coatcheck.core import limits
from coatcheck.core.job import InstantMs
from coatcheck.core.starts import Turn
from coatcheck.store.records import WakeUpKind
from coatcheck.stores.postgres.rows import MOVING_COLUMNS, Moving, Place, Row, columns
from coatcheck.stores.postgres.transaction import Transaction, Transactions

_WAITING_COLUMNS = 13


async def put_waiting(transaction: Transaction, jobs: Sequence[tuple[Place, Moving, InstantMs]]) -> None:
    """Make jobs wait: among the ready ones where their time has come by the instant that is with each."""
    if not jobs:
        return
    rows = [_waiting_row(place, moving, moving.available_at <= now) for place, moving, now in jobs]
    await transaction.rows("put_waiting", *columns(rows, _WAITING_COLUMNS))
    if any(row[-1] for row in rows):
        transaction.hint(WakeUpKind.READY)
    if not all(row[-1] for row in rows):
        transaction.hint(WakeUpKind.SCHEDULED)


def _waiting_row(place: Place, moving: Moving, is_ready: bool) -> Row:
    return (
        place.operation,
        place.tenant,
        place.priority,
        place.job_id,
        moving.available_at,
        moving.version,
        moving.attempt,
        moving.counted_attempts,
        moving.crashes,
        moving.is_alone,
        moving.started_at,
        moving.updated_at,
        is_ready,
    )


async def take_waiting(transaction: Transaction, places: Sequence[Place]) -> tuple[dict[str, Moving], set[Turn]]:
    """Take jobs out of wherever they wait; those that wait nowhere are left out. Also whose turns lost a job."""
    rows = [(place.operation, place.tenant, place.priority, place.job_id) for place in places]
    taken = await transaction.rows("take_waiting", *columns(rows, 4))
    were_ready = {row[0] for row in taken if row[1]}
    turns = {(place.operation, place.tenant) for place in places if place.job_id in were_ready}
    return {row[0]: Moving._make(row[2:]) for row in taken}, turns


async def promote(transaction: Transaction, now: InstantMs, limit: int) -> int:
    """Move jobs whose time has come to the ready ones. Nothing a client sees changes."""
    due = await transaction.rows("take_due", now, limit)
    jobs = [(Place(row[0], row[1], row[2], row[3]), Moving._make(row[-MOVING_COLUMNS:]), now) for row in due]
    await put_waiting(transaction, jobs)
    return len(due)


async def next_due_at(transaction: Transaction) -> InstantMs | None:
    """When the next job that waits for its time becomes due."""
    row = await transaction.row("next_due")
    due_at: InstantMs | None = row[0] if row else None
    return due_at


async def advance_turns(transactions: Transactions, costs: Mapping[Turn, float]) -> None:
    """Put tenants behind those that waited as long, by the cost of the jobs they were served.

    Not in the claim's own transaction: its turns would stay locked until its commit is on the disk, and every other
    claimer of the tenant would wait that long. A process that dies in between leaves its tenants a turn ahead.
    """
    rows = sorted((operation, tenant, cost) for (operation, tenant), cost in costs.items())
    if rows:
        await transactions.run(lambda transaction: transaction.run("advance_turns", *columns(rows, 3)), True)


async def leave_turns(transactions: Transactions, turns: Iterable[Turn]) -> None:
    """Let tenants that may have nothing ready any more leave the turns, and forget those that have been caught up.

    Where a tenant is just getting more work, its turn stays. A turn that stays for nothing is found by a claim.
    """
    rows = sorted(set(turns))
    if not rows:
        return

    async def act(transaction: Transaction) -> None:
        await transaction.rows("commit_cheaply")
        held = await transaction.rows("hold_turns", *columns(rows, 2))
        if held:
            await transaction.run("leave_turns", *columns(held, 2))
        operations = sorted({operation for operation, _ in rows})
        await transaction.run("forget_turns", operations, limits.SWEEP_BATCH_MAX)

    await transactions.run(act)
