"""An outbox entry as a CloudEvent (CloudEvents 1.0, structured JSON)."""

from datetime import UTC, datetime
from typing import Any

import orjson

from coatcheck.core.events import OutboxEntry

CONTENT_TYPE = "application/cloudevents+json"


def source_of(app_name: str) -> str:
    """The `source` of every event of an app: the same on every store, host and version."""
    return f"urn:coatcheck:{app_name}"


def cloud_event(entry: OutboxEntry, source: str) -> bytes:
    """One event as JSON on one line, without a line break.

    `id` is the job and its version, so it is the same however often the event is told; (`source`, `id`) is unique.
    `sequence` orders the events of one job as text. Extension names are lower-case letters only.
    """
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": f"{entry.job_id}:{entry.version}",
        "source": source,
        "type": entry.type.value,
        "subject": entry.job_id,
        "time": _rfc3339(entry.occurred_at),
        "sequence": f"{entry.version:010d}",
        "tenant": entry.tenant,
        "operation": entry.operation,
        "correlationid": entry.correlation_id,
    }
    if entry.data:
        event |= {"datacontenttype": "application/json", "data": orjson.loads(entry.data)}
    return orjson.dumps(event)


def _rfc3339(instant_ms: int) -> str:
    whole_s, ms = divmod(instant_ms, 1000)
    return f"{datetime.fromtimestamp(whole_s, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"
