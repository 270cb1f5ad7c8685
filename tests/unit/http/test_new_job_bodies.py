"""A new job is written from a template; nobody can tell."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.completion.representation import UrlBook, represent
from coatcheck.core import limits
from coatcheck.core.ids import make_job_id
from coatcheck.core.job import JobRecord, Progress
from coatcheck.core.states import Status

_VISIBLE = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
_INSTANTS = st.integers(0, limits.INSTANT_MS_MAX + 10_000)
_PREFIXES = st.sampled_from(["", "/jobs", "/a%20b", "https://jobs.example.org/100%25", "/%(id)b"])


@st.composite
def _new_jobs(draw: st.DrawFn, /, **fields: Any) -> JobRecord:
    job_id = make_job_id(draw(st.integers(0, 2**56 - 1)), draw(st.integers(0, 2**84 - 1)))
    created_at = draw(_INSTANTS)
    return JobRecord(
        id=job_id,
        tenant="default",
        operation="reports",
        operation_version="1",
        attempt=0,
        counted_attempts=0,
        max_attempts=draw(st.integers(1, 1000)),
        priority=5,
        created_at=created_at,
        updated_at=draw(st.just(created_at) | _INSTANTS),
        available_at=draw(st.just(created_at) | _INSTANTS),
        deadline_at=draw(st.none() | _INSTANTS),
        correlation_id=draw(st.text(_VISIBLE, min_size=1, max_size=128)),
        chain_id=job_id,
        **{"status": Status.QUEUED, "version": 1, **fields},
    )


@given(_PREFIXES, st.lists(_new_jobs(), min_size=1, max_size=4))
def test_a_template_writes_what_is_written_field_by_field(prefix: str, jobs: list[JobRecord]) -> None:
    urls = UrlBook(prefix, {"reports": "/reports"})
    for job in jobs:
        assert urls.represent(job) == represent(job, urls.of(job))


_OLDER_JOBS = st.one_of(
    _new_jobs(version=2, status=Status.RUNNING, started_at=1, progress=Progress(0.5, "half way")),
    _new_jobs(redrive_of="job_" + "0" * 28),
    _new_jobs(version=3, cancel_requested=True, cancel_reason="%(id)b"),
)


@given(_new_jobs(), _OLDER_JOBS)
def test_what_has_happened_to_a_job_is_never_left_out(new: JobRecord, older: JobRecord) -> None:
    urls = UrlBook("", {"reports": "/reports"})
    for job in (new, older):
        assert urls.represent(job) == represent(job, urls.of(job))


@given(_new_jobs())
def test_an_operation_this_build_does_not_know_is_represented_all_the_same(job: JobRecord) -> None:
    urls = UrlBook("", {})
    assert urls.represent(job) == represent(job, urls.of(job))
