"""Where an open job waits, and how it leaves: ready or scheduled, and the turns kept beside ready."""

from dataclasses import dataclass

from coatcheck.core.job import InstantMs
from coatcheck.store.records import WakeUpKind
from coatcheck.stores.sqlite.rows import Moving
from coatcheck.stores.sqlite.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Place:
    """Whose job it is and where it stands among the others."""

    operation: str
    tenant: str
    priority: int
    job_id: str


def put_waiting(transaction: Transaction, place: Place, moving: Moving, now: InstantMs) -> None:
    """Make a job wait: among the ready ones if its time has come, else until then."""
    is_ready = moving.available_at <= now
    transaction.run(
        "insert_ready" if is_ready else "insert_scheduled",
        operation=place.operation,
        tenant=place.tenant,
        priority=place.priority,
        job_id=place.job_id,
        available_at=moving.available_at,
        version=moving.version,
        attempt=moving.attempt,
        counted_attempts=moving.counted_attempts,
        crashes=moving.crashes,
        is_alone=int(moving.is_alone),
        started_at=moving.started_at,
        updated_at=moving.updated_at,
    )
    if is_ready:
        _join_turns(transaction, place)
        transaction.hint(WakeUpKind.READY)
    else:
        transaction.hint(WakeUpKind.SCHEDULED)


def _join_turns(transaction: Transaction, place: Place) -> None:
    if not transaction.run("wait_longer", operation=place.operation, tenant=place.tenant):
        transaction.run("join_turns", operation=place.operation, tenant=place.tenant)


def take_ready(transaction: Transaction, place: Place) -> Moving | None:
    """Take a job out of the ready ones; None where it is not among them. The caller settles its tenant's turn."""
    row = transaction.row(
        "delete_ready",
        operation=place.operation,
        tenant=place.tenant,
        priority=place.priority,
        job_id=place.job_id,
    )
    return None if row is None else Moving.from_row(row)


def take_waiting(transaction: Transaction, place: Place) -> Moving | None:
    """Take a job out of wherever it waits; None where it does not wait."""
    moving = take_ready(transaction, place)
    if moving is not None:
        transaction.run("leave_turn", operation=place.operation, tenant=place.tenant)
        transaction.run("forget_turns", operation=place.operation)
        return moving
    row = transaction.row("delete_scheduled", job_id=place.job_id)
    return None if row is None else Moving.from_row(row)


def promote(transaction: Transaction, now: InstantMs, limit: int) -> int:
    """Move jobs whose time has come to the ready ones. Nothing a client sees changes."""
    due = transaction.rows("due_jobs", now=now, limit=limit)
    for job_id, operation, tenant, priority in due:
        place = Place(operation, tenant, priority, job_id)
        row = transaction.row("delete_scheduled", job_id=job_id)
        if row is not None:
            put_waiting(transaction, place, Moving.from_row(row), now)
    return len(due)


def next_due_at(transaction: Transaction) -> InstantMs | None:
    """When the next job that waits for its time becomes due."""
    row = transaction.row("next_due")
    due_at: InstantMs | None = row[0] if row else None
    return due_at
