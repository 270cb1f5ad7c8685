"""Forgetting: a job's rows go, its tombstone stays for its own time."""

from coatcheck.core.job import InstantMs
from coatcheck.stores.sqlite.transaction import Transaction

_BY_JOB = ("delete_result", "delete_payload", "delete_attempts")


def bury(transaction: Transaction, job_id: str, now: InstantMs) -> bool:
    """Replace a finished job by its tombstone; False where there is none to bury."""
    if not transaction.run("insert_tombstone", job_id=job_id, now=now):
        return False
    transaction.fault_point("tombstone-written")
    for statement in _BY_JOB:
        transaction.run(statement, job_id=job_id)
    transaction.fault_point("purge-half")
    ((chain_id, has_costs),) = transaction.rows("delete_job", job_id=job_id)
    if has_costs:
        transaction.run("delete_job_costs", job_id=job_id)
    transaction.run("delete_effects", job_id=job_id, chain_id=chain_id)
    return True
