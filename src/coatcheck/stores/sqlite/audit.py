"""What operators did, written in the commit that did it."""

import msgspec

from coatcheck.store.controls import AuditEntry
from coatcheck.stores.sqlite.transaction import Transaction


def write_audit(transaction: Transaction, entry: AuditEntry | None) -> None:
    """Note who did what, where it was an operator."""
    if entry is None:
        return
    transaction.run(
        "insert_audit",
        at=entry.at,
        actor=entry.actor,
        origin=entry.origin,
        action=entry.action,
        target=entry.target,
        tenant=entry.tenant,
        details=msgspec.json.encode(dict(entry.details)).decode(),
    )
