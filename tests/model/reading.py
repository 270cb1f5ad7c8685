"""Every read of the store, compared with the model, and what must hold whatever happened."""

from collections.abc import Mapping, Sequence

from coatcheck.core.job import JobRecord
from coatcheck.core.states import Status
from coatcheck.store.records import JobQuery, QueueMeasure
from coatcheck.testing.model import Model
from coatcheck.testing.model_state import Place

from .pair import POLICIES, SWEEP, Pair, same

STRANGER = "stranger"


async def compare_jobs(pair: Pair, via: int) -> None:
    """Every job and tombstone, as their tenants see them, and not as others would."""
    store, model, now = pair.store(via), pair.model, pair.now
    for job_id, tenant in known_jobs(model):
        same(await store.find_job(tenant, job_id, now), model.find(tenant, job_id, now), "find_job")
    for job_id, _ in known_jobs(model)[-1:]:
        same(await store.find_job(STRANGER, job_id, now), None, "find_job of a stranger")


async def compare_details(pair: Pair, via: int, job: tuple[str, str]) -> None:
    """A job's attempts and result."""
    tenant, job_id = job
    store, model, now = pair.store(via), pair.model, pair.now
    attempts = await store.list_attempts(tenant, job_id)
    same(list(attempts), list(model.list_attempts(tenant, job_id)), "list_attempts")
    same(await store.read_result(tenant, job_id, now), model.read_result(tenant, job_id, now), "read_result")
    same(await store.read_result(STRANGER, job_id, now), None, "read_result of a stranger")


async def compare_list(pair: Pair, via: int, query: JobQuery) -> None:
    """All pages of a list."""
    store, now = pair.store(via), pair.now
    while True:
        page, predicted = await store.list_jobs(query, now), pair.model.list_jobs(query, now)
        same(list(page.jobs), list(predicted.jobs), "list_jobs")
        same(page.has_more, predicted.has_more, "has_more")
        if not page.has_more:
            return
        query = JobQuery(query.tenant, query.limit, query.operation, query.status, page.jobs[-1].id)


async def compare_measures(pair: Pair, via: int) -> None:
    """Counts of every queue."""
    measures = {measure.operation: measure for measure in await pair.store(via).measure_queues(pair.now)}
    for operation in POLICIES:
        measure = measures.get(operation, QueueMeasure(operation, 0, 0, 0, None, None))
        counted = (measure.ready, measure.scheduled, measure.running, measure.oldest_ready_at)
        wanted = pair.model.measure(operation)
        same(counted, (wanted.ready, wanted.scheduled, wanted.running, wanted.oldest_ready_at), "measure_queues")


async def compare_outbox(pair: Pair, keep: int) -> None:
    """Everything that is to be told, each job's events in their order; all but `keep` entries are then forgotten."""
    store, told = pair.store(0), pair.model.state.outbox
    # A long story has more to tell than a sweep takes.
    entries = await store.read_outbox(len(told) + SWEEP)
    seqs = [entry.seq for entry in entries]
    assert seqs == sorted(set(seqs))
    answered = [(entry.job_id, entry.version, entry.type, entry.occurred_at, entry.data) for entry in entries]
    predicted = [(event.job.id, event.job.version, event.type, event.job.updated_at, event.data) for event in told]
    same(sorted(answered, key=lambda entry: entry[0]), sorted(predicted, key=lambda entry: entry[0]), "read_outbox")
    gone = entries[: max(0, len(entries) - keep)]
    await store.remove_relayed([entry.seq for entry in gone])
    names = {(entry.job_id, entry.version) for entry in gone}
    told[:] = [event for event in told if (event.job.id, event.job.version) not in names]


def known_jobs(model: Model) -> Sequence[tuple[str, str]]:
    """Id and tenant of every job and tombstone."""
    jobs = {job_id: job.record.tenant for job_id, job in model.state.jobs.items()}
    graves = {job_id: left.tenant for job_id, left in model.state.tombstones.items()}
    return sorted((graves | jobs).items())


class Invariants:
    """What the store's own answers must never contradict, model or no model."""

    def __init__(self) -> None:
        self._ends: dict[str, tuple[Status, int | None]] = {}
        self._versions: dict[str, int] = {}

    async def check(self, pair: Pair, via: int) -> None:
        state = pair.model.state
        for job_id, tenant in known_jobs(pair.model):
            job = await pair.store(via).find_job(tenant, job_id, pair.now)
            if isinstance(job, JobRecord):
                self._check_job(job)
        waiting = len(state.in_place(Place.READY)) + len(state.in_place(Place.SCHEDULED))
        assert waiting + len(state.in_place(Place.RUNNING)) + len(state.in_place(Place.ENDED)) == len(state.jobs)

    def _check_job(self, job: JobRecord) -> None:
        assert 0 <= job.counted_attempts <= min(job.attempt, job.max_attempts), job
        assert job.version >= self._versions.get(job.id, 1), f"the version went back: {job}"
        self._versions[job.id] = job.version
        assert job.status.is_final == (job.finished_at is not None) == (job.expires_at is not None), job
        assert (job.status is Status.FAILED) == (job.error is not None), job
        if job.id in self._ends:
            assert self._ends[job.id] == (job.status, job.finished_at), f"an end was not final: {job}"
        if job.status.is_final:
            self._ends[job.id] = job.status, job.finished_at


def rows_at_rest(counts: Mapping[str, int]) -> dict[str, int]:
    """The tables that hold anything."""
    return {name: count for name, count in counts.items() if count}
