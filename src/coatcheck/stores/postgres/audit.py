"""What operators did, written in the commit that did it."""

import msgspec

from coatcheck.store.controls import AuditEntry
from coatcheck.stores.postgres.rows import plain
from coatcheck.stores.postgres.transaction import Transaction


async def write_audit(transaction: Transaction, entry: AuditEntry | None) -> None:
    """Note who did what, where it was an operator."""
    if entry is None:
        return
    details = msgspec.json.encode(dict(entry.details)).decode()
    named = (plain(entry.actor), plain(entry.origin), entry.action, plain(entry.target), entry.tenant)
    await transaction.run("insert_audit", entry.at, *named, details)
