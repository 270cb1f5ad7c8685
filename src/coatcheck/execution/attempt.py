"""One attempt as a short pipeline: payload, request, handler, result, verdict. Nothing a handler does escapes it."""

import asyncio
from typing import Any

from pydantic import ValidationError

from coatcheck.app import Operation
from coatcheck.core.errors import ErrorCategory
from coatcheck.execution.frames import AskedRetry, NotMine, Raised, Start, Stopped, Verdict
from coatcheck.execution.job import BlockingJob, Job
from coatcheck.execution.results import encode_result, is_read_from_disk
from coatcheck.execution.texts import operator_detail
from coatcheck.execution.verdicts import JobError, RetryLater

HANDLER_FAILED = "The work failed; it is not known why."
INPUT_NO_LONGER_FITS = "The input does not fit its operation."


class _CannotRun(Exception):
    """The attempt ends before its handler."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__()
        self.verdict = verdict


async def run_async(operation: Operation, start: Start, job: Job) -> Verdict:
    """Run an `async def` handler to its verdict."""
    try:
        value = await operation.handler(_request(operation, start), job)
        if is_read_from_disk(value):
            return await asyncio.to_thread(encode_result, operation, value)
        return encode_result(operation, value)
    except BaseException as error:
        return _verdict_of(error, job.cancelled)


def run_blocking(operation: Operation, start: Start, job: BlockingJob) -> Verdict:
    """Run a `def` handler to its verdict."""
    try:
        return encode_result(operation, operation.handler(_request(operation, start), job))
    except BaseException as error:
        return _verdict_of(error, job.cancelled)


def _request(operation: Operation, start: Start) -> Any:
    try:
        return operation.request.validate_json(start.payload)
    except ValidationError as error:
        if start.operation_version != operation.version:
            raise _CannotRun(NotMine()) from None
        faults = error.json(include_input=False, include_url=False, include_context=False)
        raise _CannotRun(Raised(ErrorCategory.INVALID_INPUT, INPUT_NO_LONGER_FITS, False, None, faults)) from None


def _verdict_of(error: BaseException, is_stopped: bool) -> Verdict:
    match error:
        case _CannotRun():
            return error.verdict
        case JobError():
            return Raised(error.category, error.detail, error.retryable, error.code, operator_detail(error))
        case RetryLater():
            return AskedRetry(error.delay_s)
        case asyncio.CancelledError() if is_stopped:
            return Stopped()
        case _:
            # SystemExit and KeyboardInterrupt of a handler end its attempt, never the runner.
            return Raised(ErrorCategory.HANDLER_ERROR, HANDLER_FAILED, True, None, operator_detail(error))
