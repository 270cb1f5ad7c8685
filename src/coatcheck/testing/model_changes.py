"""What changes the reference model: every write of the store's port, told in its own words."""

from collections.abc import Sequence
from typing import assert_never

from msgspec import structs

from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs, JobRecord, Progress
from coatcheck.core.outcome import Lost
from coatcheck.core.quotas import ALL
from coatcheck.core.states import Status
from coatcheck.store.records import (
    Accepted,
    Beat,
    BeatAnswer,
    CancelDisposition,
    Disposition,
    EraseDisposition,
    Finishing,
    KeyConflict,
    KeyOfExpiredJob,
    Lease,
    Prunable,
    QueueFull,
    RedriveRefusal,
    Redriving,
    Replayed,
    Submission,
    Tombstone,
)
from coatcheck.testing.model import Model
from coatcheck.testing.model_endings import Verdict, judge
from coatcheck.testing.model_moves import begin, bury, end, lateness, put_waiting, settle, take_waiting, tell
from coatcheck.testing.model_state import ModelJob, ModelKey, Place


class Changes:
    """The writes. Each does to the model what the store must do, and returns what the store must answer.

    Args:
        model: what is changed.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._state = model.state

    def accept(self, submission: Submission) -> Disposition:
        now, key = submission.created_at, submission.key
        scope = (submission.tenant, submission.operation, key.key if key is not None else "")
        earlier = self._state.keys.get(scope)
        if key is not None and earlier is not None and earlier.key.expires_at > now:
            if (earlier.key.algorithm, earlier.key.fingerprint) != (key.algorithm, key.fingerprint):
                return KeyConflict(earlier.job_id)
            job = self._state.jobs.get(earlier.job_id)
            is_there = job is not None and (job.record.expires_at is None or job.record.expires_at > now)
            return Replayed(self._model.record(earlier.job_id, now)) if is_there else KeyOfExpiredJob(earlier.job_id)
        full = self._full(submission)
        if full is not None:
            return full
        over = self._state.costs.exceeded(submission.tenant, submission.charges)
        if over is not None:
            return over
        self._state.costs.charge(submission)
        if key is not None:
            self._state.keys[scope] = ModelKey(key, submission.job_id)
        job = ModelJob(_new_record(submission), Place.ENDED, submission.payload)
        job.key_expires_at = None if key is None else key.expires_at
        begin(self._state, job, now)
        return Accepted(self._model.record(submission.job_id, now))

    def _full(self, submission: Submission) -> QueueFull | None:
        """The limit that a submission meets, if there is one."""
        waiting = [*self._state.in_place(Place.READY), *self._state.in_place(Place.SCHEDULED)]
        for limit in submission.limits:
            tenant, operation = limit.scope_of(submission.tenant)
            queued = sum(job.record.tenant == tenant and operation in (ALL, job.record.operation) for job in waiting)
            if queued >= limit.value:
                return QueueFull(limit, queued)
        return None

    def claim(self, job: ModelJob, lease: Lease, now: InstantMs, now_s: float) -> JobRecord:
        """The job whose turn it is was leased. It starts no earlier than it may, however old the caller's time is."""
        record, now = job.record, max(now, job.record.available_at)
        take_waiting(self._state, job, in_turn=True)
        job.record = structs.replace(
            record,
            version=record.version + 1,
            attempt=record.attempt + 1,
            counted_attempts=record.counted_attempts + 1,
            updated_at=now,
            started_at=now if record.started_at is None else record.started_at,
            status=Status.RUNNING,
        )
        job.place, job.lease, job.beats, job.alive_s, job.attempt_started_at = Place.RUNNING, lease, 0, now_s, now
        tell(self._state, job, EventType.STARTED)
        return self._model.record(record.id, now)

    def beat(self, beat: Beat, now: InstantMs, now_s: float) -> BeatAnswer:
        job = self._state.holder(beat.lease)
        if job is None:
            return BeatAnswer.LOST
        job.beats, job.alive_s = job.beats + 1, now_s
        if beat.progress is not None:
            told = beat.progress if beat.progress != Progress(None, None) else None
            job.record = structs.replace(job.record, progress=told, version=job.record.version + 1, updated_at=now)
        return BeatAnswer.CANCEL if job.record.cancel_requested else BeatAnswer.GO_ON

    def finish(self, finishing: Finishing, now: InstantMs) -> JobRecord | None:
        """None: the lease is lost."""
        job = self._state.holder(finishing.lease)
        if job is None:
            return None
        settle(self._state, job, judge(job, finishing.outcome, finishing.policy, now, finishing.jitter), now)
        return self._model.record(job.record.id, now)

    def rescue(self, job: ModelJob, available_at: InstantMs, now: InstantMs) -> None:
        """A lease ran out. If the job is to wait, the store chose until when: see `rescue_window`."""
        policy = self._state.policies[job.record.operation]
        verdict = judge(job, Lost(is_blamed=True, is_suspect=False), policy, now, jitter=0.0)
        verdict.available_at = available_at
        settle(self._state, job, verdict, now)

    def record_effect(self, lease: Lease, name: str, value: bytes) -> bytes | None:
        """None: the lease is lost."""
        job = self._state.holder(lease)
        return None if job is None else self._state.effects.setdefault((job.record.chain_id, name), value)

    def cancel(
        self, tenant: str, job_id: str, reason: str | None, now: InstantMs
    ) -> tuple[CancelDisposition, JobRecord] | Tombstone | None:
        found, job = self._model.find(tenant, job_id, now), self._state.jobs.get(job_id)
        if not isinstance(found, JobRecord) or job is None:
            return None if isinstance(found, JobRecord) else found
        if found.status.is_final:
            is_cancelled = found.status is Status.CANCELLED
            return (CancelDisposition.ALREADY_CANCELLED if is_cancelled else CancelDisposition.ALREADY_FINISHED), found
        if job.place is Place.RUNNING:
            if not job.record.cancel_requested:
                job.record = _asked_to_stop(job.record, reason, now)
            return CancelDisposition.REQUESTED, self._model.record(job_id, now)
        take_waiting(self._state, job, in_turn=False)
        job.record = structs.replace(job.record, cancel_requested=True, cancel_reason=reason)
        end(self._state, job, Verdict("", job.record.counted_attempts, Status.CANCELLED), now)
        return CancelDisposition.CANCELLED, self._model.record(job_id, now)

    def erase(self, tenant: str, job_id: str, now: InstantMs) -> EraseDisposition | None:
        found = self._model.find(tenant, job_id, now)
        if found is None:
            return None
        if isinstance(found, Tombstone):
            return EraseDisposition.ALREADY_GONE
        if not found.status.is_final:
            return EraseDisposition.NOT_FINISHED
        bury(self._state, self._state.jobs[job_id], now)
        return EraseDisposition.ERASED

    def redrive(self, redriving: Redriving) -> JobRecord | RedriveRefusal:
        now = redriving.created_at
        found = self._model.find(redriving.tenant, redriving.job_id, now)
        if not isinstance(found, JobRecord):
            return RedriveRefusal.NOT_FOUND
        if found.status is not Status.FAILED:
            return RedriveRefusal.NOT_FAILED
        if found.redriven_as is not None:
            again = self._model.find(redriving.tenant, found.redriven_as, now)
            return again if isinstance(again, JobRecord) else RedriveRefusal.NOT_FOUND
        failed = self._state.jobs[found.id]
        failed.record = structs.replace(
            failed.record, redriven_as=redriving.new_job_id, version=found.version + 1, updated_at=now
        )
        begin(self._state, ModelJob(_redriven_record(found, redriving), Place.ENDED, failed.payload), now)
        return self._model.record(redriving.new_job_id, now)

    def promote(self, now: InstantMs) -> int:
        """Jobs whose time has come are ready."""
        scheduled = self._state.in_place(Place.SCHEDULED)
        due = [job for job in scheduled if job.record.available_at <= now]
        for job in sorted(due, key=lambda job: (job.record.available_at, job.record.id)):
            put_waiting(self._state, job, now)
        return len(due)

    def expire(self, jobs: Sequence[ModelJob], now: InstantMs, *, in_turn: bool = False) -> int:
        """Those of the waiting jobs that came too late to start end failed: found by a sweep, or in their turn."""
        late = [(job, error) for job in jobs if (error := lateness(self._state, job, now)) is not None]
        for job, error in late:
            take_waiting(self._state, job, in_turn=in_turn)
            verdict = Verdict("", job.record.counted_attempts, Status.FAILED, error=error, is_dead_letter=True)
            end(self._state, job, verdict, now)
        return len(late)

    def prune(self, what: Prunable, now: InstantMs) -> int:
        """What retention no longer keeps is gone."""
        match what:
            case Prunable.RESULTS:
                return self._prune_results(now)
            case Prunable.JOBS:
                gone = [job for job in self._state.jobs.values() if _is_over(job.record.expires_at, now)]
                for job in gone:
                    bury(self._state, job, now)
                return len(gone)
            case Prunable.TOMBSTONES:
                kept = {job_id: left for job_id, left in self._state.tombstones.items() if left.kept_until > now}
                count = len(self._state.tombstones) - len(kept)
                self._state.tombstones = kept
                return count
            case Prunable.KEYS:
                keys = {scope: key for scope, key in self._state.keys.items() if key.key.expires_at > now}
                count = len(self._state.keys) - len(keys)
                self._state.keys = keys
                return count
            case Prunable.SPENDING:
                return self._state.costs.prune(now)
            case Prunable.API_KEYS | Prunable.AUDIT:
                # What operators leave behind; nobody in the model operates.
                return 0
            case _:
                assert_never(what)

    def _prune_results(self, now: InstantMs) -> int:
        """Results that go before their job; the others go with it."""
        gone = [
            job
            for job in self._state.jobs.values()
            if job.result is not None
            and job.record.result_expires_at != job.record.expires_at
            and _is_over(job.record.result_expires_at, now)
        ]
        for job in gone:
            job.result = None
        return len(gone)


def _is_over(instant: InstantMs | None, now: InstantMs) -> bool:
    return instant is not None and instant <= now


def _new_record(submission: Submission) -> JobRecord:
    return JobRecord(
        id=submission.job_id,
        tenant=submission.tenant,
        operation=submission.operation,
        operation_version=submission.operation_version,
        status=Status.QUEUED,
        version=1,
        attempt=0,
        counted_attempts=0,
        max_attempts=submission.max_attempts,
        priority=submission.priority,
        created_at=submission.created_at,
        updated_at=submission.created_at,
        available_at=submission.available_at,
        correlation_id=submission.correlation_id,
        chain_id=submission.job_id,
        deadline_at=submission.deadline_at,
        traceparent=submission.traceparent,
    )


def _redriven_record(failed: JobRecord, redriving: Redriving) -> JobRecord:
    """The same request once more: what the client sent carries over, but for its deadline."""
    return JobRecord(
        id=redriving.new_job_id,
        tenant=failed.tenant,
        operation=failed.operation,
        operation_version=failed.operation_version,
        status=Status.QUEUED,
        version=1,
        attempt=0,
        counted_attempts=0,
        max_attempts=failed.max_attempts,
        priority=failed.priority,
        created_at=redriving.created_at,
        updated_at=redriving.created_at,
        available_at=redriving.created_at,
        correlation_id=failed.correlation_id,
        chain_id=failed.chain_id,
        traceparent=failed.traceparent,
        redrive_of=failed.id,
    )


def _asked_to_stop(record: JobRecord, reason: str | None, now: InstantMs) -> JobRecord:
    return structs.replace(
        record, cancel_requested=True, cancel_reason=reason, version=record.version + 1, updated_at=now
    )
