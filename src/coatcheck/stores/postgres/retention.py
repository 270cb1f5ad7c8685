"""Forgetting: a job's rows go, its tombstone stays for its own time."""

from collections.abc import Sequence

from coatcheck.core.job import InstantMs
from coatcheck.stores.postgres.transaction import Transaction


async def bury(transaction: Transaction, job_ids: Sequence[str], now: InstantMs) -> int:
    """Replace finished jobs by their tombstones; returns how many there were to bury."""
    if not job_ids:
        return 0
    # One statement is one moment: everything a fault could come between lies before or after it.
    rows = await transaction.rows("bury", job_ids, now)
    if not rows:
        return 0
    transaction.fault_point("tombstone-written")
    transaction.fault_point("purge-half")
    await transaction.run("delete_effects", sorted({row[1] for row in rows}))
    return len(rows)
