"""Retry-After: from measures, clamped, spread."""

from dataclasses import replace

import pytest
from msgspec import structs

from coatcheck.completion.estimates import expected_wait_s
from coatcheck.core.job import JobRecord, Progress
from coatcheck.core.states import Status
from coatcheck.store.records import QueueMeasure

NOW = 1_767_600_000_000
QUEUED = JobRecord(
    id="job_1",
    tenant="default",
    operation="reports",
    operation_version="1",
    status=Status.QUEUED,
    version=1,
    attempt=0,
    counted_attempts=0,
    max_attempts=5,
    priority=5,
    created_at=NOW,
    updated_at=NOW,
    available_at=NOW,
    correlation_id="c",
    chain_id="job_1",
)
RUNNING = structs.replace(QUEUED, status=Status.RUNNING, started_at=NOW - 30_000)
BUSY = QueueMeasure("reports", ready=20, scheduled=0, running=4, oldest_ready_at=NOW, recent_run_s=10.0)


@pytest.mark.parametrize(
    ("job", "measure", "wait_s"),
    [
        (QUEUED, None, 1.0),
        (QUEUED, BUSY, 60.0),
        (QUEUED, replace(BUSY, running=0), 210.0),
        (QUEUED, replace(BUSY, recent_run_s=None), 6.0),
        (structs.replace(QUEUED, available_at=NOW + 90_000), BUSY, 90.0),
        (RUNNING, replace(BUSY, recent_run_s=40.0), 10.0),
        (RUNNING, BUSY, 3.0),
        (structs.replace(RUNNING, progress=Progress(0.75, None)), BUSY, 10.0),
        (structs.replace(RUNNING, progress=Progress(0.0, None)), BUSY, 3.0),
        (structs.replace(RUNNING, progress=Progress(None, "x")), replace(BUSY, recent_run_s=40.0), 10.0),
        (structs.replace(RUNNING, cancel_requested=True), replace(BUSY, recent_run_s=400.0), 3.0),
    ],
)
def test_expected_wait(job: JobRecord, measure: QueueMeasure | None, wait_s: float) -> None:
    assert expected_wait_s(job, measure, NOW) == pytest.approx(wait_s)
