"""Where an open job waits, and how it leaves: ready or scheduled, and the turns kept beside ready."""

from collections import Counter
from collections.abc import Sequence

from coatcheck.core.job import InstantMs
from coatcheck.store.records import WakeUpKind
from coatcheck.stores.sqlite.rows import Moving, Place, Row
from coatcheck.stores.sqlite.transaction import Transaction


def put_waiting(transaction: Transaction, jobs: Sequence[tuple[Place, Moving]], now: InstantMs) -> None:
    """Make jobs wait: among the ready ones where their time has come, else until then."""
    ready = [(place, moving) for place, moving in jobs if moving.available_at <= now]
    if ready:
        transaction.run_many("insert_ready", [_waiting_row(place, moving) for place, moving in ready])
        for (operation, tenant), count in Counter((place.operation, place.tenant) for place, _ in ready).items():
            _join_turns(transaction, operation, tenant, count)
        transaction.hint(WakeUpKind.READY)
    if len(ready) < len(jobs):
        later = [(place, moving) for place, moving in jobs if moving.available_at > now]
        transaction.run_many("insert_scheduled", [_waiting_row(place, moving) for place, moving in later])
        transaction.hint(WakeUpKind.SCHEDULED)


def _waiting_row(place: Place, moving: Moving) -> Row:
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
        int(moving.is_alone),
        moving.started_at,
        moving.updated_at,
    )


def _join_turns(transaction: Transaction, operation: str, tenant: str, count: int) -> None:
    if not transaction.run("wait_longer", operation=operation, tenant=tenant, count=count):
        transaction.run("join_turns", operation=operation, tenant=tenant, count=count)


def take_waiting(transaction: Transaction, place: Place) -> Moving | None:
    """Take a job out of wherever it waits; None where it does not wait."""
    row = transaction.row(
        "delete_ready",
        operation=place.operation,
        tenant=place.tenant,
        priority=place.priority,
        job_id=place.job_id,
    )
    if row is not None:
        transaction.run("leave_turn", operation=place.operation, tenant=place.tenant)
        transaction.run("forget_turns", operation=place.operation)
        return Moving.from_row(row)
    row = transaction.row("delete_scheduled", job_id=place.job_id)
    return None if row is None else Moving.from_row(row)


def promote(transaction: Transaction, now: InstantMs, limit: int) -> int:
    """Move jobs whose time has come to the ready ones. Nothing a client sees changes."""
    due = transaction.rows("due_jobs", now=now, limit=limit)
    jobs = [
        (Place(operation, tenant, priority, job_id), Moving.from_row(row))
        for job_id, operation, tenant, priority, *row in due
    ]
    transaction.run_many("delete_due", [(moving.available_at, place.job_id) for place, moving in jobs])
    put_waiting(transaction, jobs, now)
    return len(due)


def next_due_at(transaction: Transaction) -> InstantMs | None:
    """When the next job that waits for its time becomes due."""
    row = transaction.row("next_due")
    due_at: InstantMs | None = row[0] if row else None
    return due_at
