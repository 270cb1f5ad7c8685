"""The life of a job, told once.

A client hands in work; once it is accepted the job is *queued*. A worker claims it and it is *running*
under a lease. It ends *succeeded*, *failed* or *cancelled*, and an end is final. Between the ends a job may go
back to *queued* any number of times: to wait for its next attempt, because its worker was lost, or because
its worker was asked to stop. Every engine drives exactly the moves of TRANSITIONS and refuses all others.
"""

from enum import StrEnum


class Status(StrEnum):
    """What a client sees of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in FINAL


class Event(StrEnum):
    """What can happen to a job."""

    CLAIM = "claim"
    PROGRESS = "progress"
    SUCCEED = "succeed"
    FAIL = "fail"
    RETRY = "retry"
    RELEASE = "release"
    RESCUE = "rescue"
    EXPIRE = "expire"
    CANCEL = "cancel"
    REQUEST_CANCEL = "request_cancel"
    ERASE = "erase"
    REDRIVE = "redrive"


FINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED})

TRANSITIONS: dict[tuple[Status, Event], Status] = {
    (Status.QUEUED, Event.CLAIM): Status.RUNNING,
    (Status.QUEUED, Event.EXPIRE): Status.FAILED,
    (Status.QUEUED, Event.CANCEL): Status.CANCELLED,
    (Status.RUNNING, Event.PROGRESS): Status.RUNNING,
    (Status.RUNNING, Event.SUCCEED): Status.SUCCEEDED,
    (Status.RUNNING, Event.FAIL): Status.FAILED,
    (Status.RUNNING, Event.RETRY): Status.QUEUED,
    (Status.RUNNING, Event.RELEASE): Status.QUEUED,
    (Status.RUNNING, Event.RESCUE): Status.QUEUED,
    (Status.RUNNING, Event.REQUEST_CANCEL): Status.RUNNING,
    (Status.RUNNING, Event.CANCEL): Status.CANCELLED,
    (Status.SUCCEEDED, Event.ERASE): Status.SUCCEEDED,
    (Status.FAILED, Event.ERASE): Status.FAILED,
    (Status.FAILED, Event.REDRIVE): Status.FAILED,
    (Status.CANCELLED, Event.ERASE): Status.CANCELLED,
}


def target(status: Status, event: Event) -> Status | None:
    """The status after `event`, or None where the move is illegal and must change nothing."""
    return TRANSITIONS.get((status, event))
