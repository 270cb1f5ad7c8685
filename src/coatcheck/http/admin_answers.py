"""What operators read, as JSON. Of a key never more than its id: what is kept of it is shown nowhere."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from coatcheck.completion.representation import instant
from coatcheck.core.costs import units_of
from coatcheck.core.job import InstantMs
from coatcheck.http.exchange import Exchange
from coatcheck.operators.keys import NewKey
from coatcheck.operators.limits import LimitInForce
from coatcheck.operators.modes import OperationState
from coatcheck.store.controls import ApiKey, AuditedEntry, Tenant
from coatcheck.store.costs import SpendingRow

Fields = Mapping[str, Any]

_UNKEPT = (b"cache-control", b"no-store")


async def answer_fields(exchange: Exchange, fields: Fields, status: int = 200, location: str | None = None) -> None:
    """Answer with a JSON object, which nobody is to keep."""
    headers = [_UNKEPT] if location is None else [_UNKEPT, (b"location", location.encode("ascii"))]
    await exchange.answer_json(status, orjson.dumps(fields), headers)


def tenant_fields(tenant: Tenant) -> Fields:
    return {
        "name": tenant.name,
        "created_at": instant(tenant.created_at),
        "weight": tenant.weight,
        "paused": tenant.is_paused,
        "revocation": tenant.revocation,
        "revoked_at": instant(tenant.revoked_at),
        "revocation_done_at": instant(tenant.revocation_done_at),
        "revocation_by_operation": dict(tenant.by_operation),
    }


def key_fields(key: ApiKey, now: InstantMs) -> Fields:
    return {
        "id": key.key_id,
        "tenant": key.tenant,
        "label": key.label,
        "scopes": list(key.scopes),
        "live": key.is_live(now),
        "created_at": instant(key.created_at),
        "expires_at": instant(key.expires_at),
        "revoked_at": instant(key.revoked_at),
        "last_used_at": instant(key.last_used_at),
    }


def new_key_fields(new: NewKey, now: InstantMs) -> Fields:
    """The only answer that ever has a key in it."""
    return {**key_fields(new.key, now), "key": new.text}


def limit_fields(limit: LimitInForce) -> Fields:
    return {
        "name": limit.name,
        "tenant": limit.tenant,
        "operation": limit.operation,
        "value": limit.value,
        "meaning": limit.meaning,
        "origin": limit.origin,
    }


def spending_fields(row: SpendingRow) -> Fields:
    return {
        "kind": row.kind,
        "operation": row.operation,
        "window_began_at": instant(row.window.began_at),
        "window_ends_at": instant(row.window.ends_at),
        "charged": units_of(row.charged),
        "spent": units_of(row.spent),
    }


def operation_fields(state: OperationState) -> Fields:
    return {"name": state.name, "mode": state.mode, "queued": state.queued, "running": state.running}


def audit_fields(audited: AuditedEntry) -> Fields:
    entry = audited.entry
    return {
        "seq": audited.seq,
        "at": instant(entry.at),
        "actor": entry.actor,
        "origin": entry.origin,
        "action": entry.action,
        "target": entry.target,
        "tenant": entry.tenant,
        "details": entry.details,
    }


def page_fields(name: str, items: Sequence[Fields], next_cursor: str | None) -> Fields:
    """A page of a list."""
    return {name: items, "next_cursor": next_cursor}
