"""The data of an event is what a JSON encoder would make of it."""

import json

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.events import event_data
from coatcheck.core.job import JobRecord
from coatcheck.core.states import Status

_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_ERRORS = st.builds(ErrorInfo, st.sampled_from(ErrorCategory), _TEXT, st.none() | _TEXT)


@given(st.sampled_from(Status), _TEXT, st.none() | _TEXT, st.none() | _ERRORS)
def test_event_data_is_json_of_the_job(status: Status, text: str, maybe: str | None, error: ErrorInfo | None) -> None:
    job = JobRecord(
        id="job_1",
        tenant=text,
        operation="notes",
        operation_version="1",
        status=status,
        version=7,
        attempt=2,
        counted_attempts=2,
        max_attempts=3,
        priority=5,
        created_at=1,
        updated_at=2,
        available_at=1,
        correlation_id="c",
        chain_id="job_1",
        cancel_reason=maybe,
        error=error,
        redrive_of=maybe,
    )
    expected = {
        "id": "job_1",
        "operation": "notes",
        "tenant": text,
        "status": status,
        "version": 7,
        "attempt": 2,
        "error": error and {"category": error.category, "code": error.code, "detail": error.detail},
        "cancel_reason": maybe,
        "redrive_of": maybe,
    }
    assert event_data(job) == json.dumps(expected, ensure_ascii=False, separators=(",", ":")).encode()
