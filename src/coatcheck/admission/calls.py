"""Submissions from code instead of over HTTP: the same options by their names, and the same checks."""

from typing import Any, TypedDict

import pydantic_core

from coatcheck.admission.admit import admit
from coatcheck.admission.correlation import new_correlation_id
from coatcheck.admission.options import Admitted, SubmissionOptions
from coatcheck.app import Operation
from coatcheck.core import limits
from coatcheck.core.job import InstantMs


class SubmitOptions(TypedDict, total=False):
    """What may come with a submission; the same as the HTTP headers of the same names, and whose it is.

    idempotency_key: makes it safe to submit again. start_after, deadline: instants in ms since 1970.
    priority: 0 to 9, lower first. correlation_id: ties log lines together. tenant: always `default`, if left out: where
    clients authenticate, the job's client is then answered 404.
    """

    idempotency_key: str
    start_after: InstantMs
    deadline: InstantMs
    priority: int
    correlation_id: str
    tenant: str


def admit_call(operation: Operation, request: Any, options: SubmitOptions, now: InstantMs) -> Admitted:
    """Decide on a submission from code. `request` is as in Service.submit.

    Raises:
        Refused: with the problem code a client would be answered with.
        ValueError: the tenant cannot be one, or the request makes no JSON.
    """
    _check_tenant(options.get("tenant"))
    body = request if isinstance(request, bytes) else pydantic_core.to_json(request, by_alias=True)
    return admit(operation, body, _submission_options(options), now)


def _submission_options(options: SubmitOptions) -> SubmissionOptions:
    return SubmissionOptions(
        correlation_id=options.get("correlation_id") or new_correlation_id(),
        idempotency_key=options.get("idempotency_key"),
        start_after=options.get("start_after"),
        deadline=options.get("deadline"),
        priority=options.get("priority"),
    )


def _check_tenant(tenant: str | None) -> None:
    if tenant is not None and not (0 < len(tenant) <= limits.TENANT_CHARS_MAX and tenant.isprintable()):
        raise ValueError(f"tenant is {tenant!r}, but it must have 1 to {limits.TENANT_CHARS_MAX} printable characters.")
