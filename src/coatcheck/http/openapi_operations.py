"""The routes of one operation: handing in, reading, the result, cancelling, erasing, attempts, the list."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from coatcheck.app import Operation
from coatcheck.http.access import CANCEL, READ, SUBMIT, VIEW, Access
from coatcheck.http.openapi_access import Doors
from coatcheck.http.openapi_answers import BODY, CORRELATED, RATED, STORED, ProblemAnswers, answer
from coatcheck.http.openapi_operation_schemas import JSON, OperationSchemas, job_examples
from coatcheck.http.openapi_parameters import (
    CORRELATION_ID,
    IF_NONE_MATCH,
    JOB_ID,
    LAST_EVENT_ID,
    PAGING,
    PREFER,
    span,
    submission_headers,
)
from coatcheck.http.openapi_schemas import Schema, ref

READ_CODES: Final = ("polling-too-fast", "saturated", *STORED)
LIST_CODES: Final = ("invalid-parameter", "invalid-cursor", "not-acceptable", *READ_CODES)
_FOUND: Final = ("not-found", "job-expired", *STORED)
_BODY: Final = (*BODY, "not-acceptable")
_FOUND_READ: Final = ("not-found", "job-expired", *READ_CODES)
_UNADMITTED: Final = ("rate-limited", "too-many-queued", "budget-exceeded", "saturated")
_JOB: Final = (*CORRELATED, "ETag", "Cache-Control", "Vary", "Retry-After", "Job-Estimated-Start", "Sunset")
_JOB_READ: Final = (*_JOB, *RATED, "Preference-Applied")
_ACCEPTED: Final = (*_JOB_READ, "Location", "Idempotent-Replayed")
_LISTED: Final = (*CORRELATED, *RATED, "Cache-Control", "Vary")

_READ_TEXT = """\
Poll it, wait on it, or let it tell you:

- `If-None-Match` with the `ETag` you hold answers `304` while nothing changed; `Retry-After` says when to ask again.
- `Prefer: wait=N` holds the answer until the job is done or, with `If-None-Match`, until any newer version.
- `Accept: text/event-stream` answers with a live stream that ends after `done`.

`HEAD` answers like `GET` without a body and never waits."""

_STREAM: Final[Schema] = {
    "type": "string",
    "description": (
        "Events named `status`, `progress` and, last, `done`: one for each version of the job, with the version as "
        "`id` and the job's JSON as `data`. A comment line keeps a silent stream open."
    ),
}

_LINKS: Final = {
    "status": ("get", "Read how the work is going."),
    "result": ("result_of", "Fetch the result once the job succeeded."),
    "cancel": ("cancel", "Ask the job to stop."),
    "attempts": ("attempts_of", "Look at every start."),
    "erase": ("erase", "Erase the finished job."),
}


@dataclass(frozen=True, slots=True)
class OperationRoutes:
    """Describes the routes of one operation. `base_url` begins the URLs in examples; it may be empty."""

    operation: Operation
    schemas: OperationSchemas
    problems: ProblemAnswers
    doors: Doors
    base_url: str

    def path_items(self) -> dict[str, Schema]:
        """The operation's path items by path."""
        path = self.operation.path
        job_path = f"{path}/{{id}}"
        views = {
            f"{job_path}/view-token": {"parameters": [JOB_ID], "post": self._view_token()},
            f"{job_path}/view-session": {"parameters": [JOB_ID], "post": self._view_session()},
        }
        return {
            path: {"post": self._submit(), "get": self._list()},
            job_path: {"parameters": [JOB_ID], "get": self._read(), "delete": self._erase()},
            f"{job_path}/result": {"parameters": [JOB_ID], "get": self._result()},
            f"{job_path}/cancel": {"parameters": [JOB_ID], "post": self._cancel()},
            f"{job_path}/attempts": {"parameters": [JOB_ID], "get": self._attempts()},
            **(views if self.doors.has_views else {}),
        }

    def _route(self, verb: str, summary: str, description: str) -> Schema:
        name = self.operation.name
        return {"operationId": f"{verb}_{name}", "tags": [name], "summary": summary, "description": description}

    def _refusals(self, access: Access, *codes: str, at: Mapping[str, int] = MappingProxyType({})) -> Schema:
        return self.problems.by_status(*codes, *self.doors.codes(access), at=at)

    def _submit(self) -> Schema:
        policy = self.operation.policy
        codes = [*_BODY, *_UNADMITTED, "invalid-header", "idempotency-key-reused", "job-expired", "draining", *STORED]
        if policy.is_key_required:
            codes.append("idempotency-key-required")
        submitted = inspect.getdoc(self.operation.handler) or f"A new job of `{self.operation.name}`."
        return {
            **self._route("submit", "Hand in work", submitted),
            **self.doors.security(SUBMIT),
            "x-idempotency-key-window-s": policy.key_window_s,
            "parameters": submission_headers(policy),
            "requestBody": {
                "required": True,
                "description": f"At most {policy.payload_bytes_max:,} bytes; `application/*+json` is accepted as well.",
                "content": {JSON: _media(self.schemas.request, self.schemas.request_example)},
            },
            "responses": {**self._submitted(), **self._refusals(SUBMIT, *codes, at={"job-expired": 409})},
        }

    def _submitted(self) -> dict[str, Schema]:
        examples = job_examples(self.operation, self.schemas, self.base_url)
        final = {JSON: {"schema": self.schemas.job, "examples": {"succeeded": examples["succeeded"]}}}
        begun = {JSON: {"schema": self.schemas.job, "examples": {"queued": examples["queued"]}}}
        done = "The work was done while `Prefer: wait` held the answer: this is the final job."
        durable = "The job is durable: a new one, or the one that the key stands for."
        links = self._links()
        return {
            "200": {**answer(done, _ACCEPTED, final), "links": links},
            "202": {**answer(durable, _ACCEPTED, begun), "links": links},
        }

    def _links(self) -> Schema:
        return {
            name: {
                "operationId": f"{verb}_{self.operation.name}",
                "parameters": {"id": "$response.body#/id"},
                "description": description,
            }
            for name, (verb, description) in _LINKS.items()
        }

    def _list(self) -> Schema:
        own = {"type": "object", "properties": {"jobs": {"type": "array", "items": self.schemas.job}}}
        content = {JSON: {"schema": {"allOf": [ref("JobList"), own]}}}
        return {
            **self._route("list", "List jobs", "Your jobs of this operation, newest first, a page at a time."),
            **self.doors.security(READ),
            "parameters": [*PAGING, CORRELATION_ID],
            "responses": {
                "200": answer("One page.", (*_LISTED, "Link"), content),
                **self._refusals(READ, *LIST_CODES),
            },
        }

    def _read(self) -> Schema:
        examples = job_examples(self.operation, self.schemas, self.base_url)
        content = {JSON: {"schema": self.schemas.job, "examples": examples}, "text/event-stream": {"schema": _STREAM}}
        return {
            **self._route("get", "Read a job", _READ_TEXT),
            **self.doors.security(VIEW),
            "parameters": [IF_NONE_MATCH, PREFER, LAST_EVENT_ID, CORRELATION_ID],
            "responses": {
                "200": answer("The job as it stands, or its stream.", _JOB_READ, content),
                "204": answer("The stream was over already: nothing can follow the `Last-Event-ID`.", _LISTED),
                "304": answer("Nothing changed since the version you hold.", _JOB_READ),
                **self._refusals(VIEW, "not-acceptable", *_FOUND_READ),
            },
        }

    def _result(self) -> Schema:
        content: Schema = {}
        if self.schemas.result is not None:
            content[JSON] = _media(self.schemas.result, self.schemas.result_example)
        if self.operation.returns_file:
            content["*/*"] = {"schema": {"description": "The bytes of a file, under the file's own media type."}}
        codes = ("job-not-finished", "job-failed", "job-cancelled", "result-expired", *_FOUND_READ)
        kept_headers = (*CORRELATED, *RATED, "ETag", "Cache-Control", "Sunset")
        text = "The result, with its own media type. Browsers save it, and never run it."
        kept = f"The result itself, kept for {span(self.operation.policy.retention.result_s)} after the job's end."
        return {
            **self._route("result_of", "Fetch the result", kept),
            **self.doors.security(VIEW),
            "parameters": [IF_NONE_MATCH, CORRELATION_ID],
            "responses": {
                "200": answer(text, (*kept_headers, "Content-Disposition"), content),
                "304": answer("You hold it already; a result never changes.", kept_headers),
                **self._refusals(VIEW, *codes),
            },
        }

    def _cancel(self) -> Schema:
        content = {JSON: {"schema": self.schemas.job}}
        text = (
            "A queued job is cancelled at once; a running one is told to stop, and soon does. Repeating it is safe. "
            "An empty body needs no `Content-Type`."
        )
        body = {JSON: {"schema": ref("Cancellation"), "example": {"reason": "Ordered twice"}}}
        return {
            **self._route("cancel", "Cancel a job", text),
            **self.doors.security(CANCEL),
            "parameters": [CORRELATION_ID],
            "requestBody": {"required": False, "content": body},
            "responses": {
                "200": answer("The job is cancelled.", _JOB, content),
                "202": answer("The job is running and was told to stop.", _JOB, content),
                **self._refusals(CANCEL, "job-already-finished", *_BODY, *_FOUND),
            },
        }

    def _erase(self) -> Schema:
        text = "Erase a finished job now: its payload, its result and its error."
        return {
            **self._route("erase", "Erase a job", text),
            **self.doors.security(CANCEL),
            "parameters": [CORRELATION_ID],
            "responses": {
                "204": answer("It is gone; reading it answers `410` from now on."),
                **self._refusals(CANCEL, "job-not-finished", *_FOUND),
            },
        }

    def _attempts(self) -> Schema:
        content = {JSON: {"schema": ref("AttemptList")}}
        return {
            **self._route("attempts_of", "List a job's attempts", "Every start of the job, oldest first."),
            **self.doors.security(VIEW),
            "parameters": [CORRELATION_ID],
            "responses": {
                "200": answer("All attempts so far.", _LISTED, content),
                **self._refusals(VIEW, "not-acceptable", *_FOUND_READ),
            },
        }

    def _view_token(self) -> Schema:
        text = (
            "A short-lived token that reads this job - its status, stream, result and attempts - and does nothing else."
            " Give it to a browser instead of your key. It ends with the credential it was made with, at the latest."
        )
        body = {JSON: {"schema": ref("ViewTokenRequest"), "example": {"lifetime_s": 300}}}
        return {
            **self._route("view_token_of", "Make a view token", text),
            **self.doors.security(READ),
            "parameters": [CORRELATION_ID],
            "requestBody": {"required": False, "content": body},
            "responses": {
                "200": answer("The token.", (*CORRELATED, "Cache-Control"), {JSON: {"schema": ref("ViewToken")}}),
                **self._refusals(READ, *_BODY, *_FOUND),
            },
        }

    def _view_session(self) -> Schema:
        text = (
            "Exchange a view token for a cookie that is sent with reads of this job alone, for pages that cannot set"
            " headers, such as those with an `EventSource`."
        )
        return {
            **self._route("view_session_of", "Begin a view session", text),
            "security": [{"viewToken": []}],
            "parameters": [CORRELATION_ID],
            "responses": {
                "204": answer("The cookie is set.", (*CORRELATED, "Cache-Control", "Set-Cookie")),
                **self._refusals(VIEW, "request-timeout", "payload-too-large", *_FOUND),
            },
        }


def _media(schema: Schema, example: list[object]) -> Schema:
    return {"schema": schema, **({"example": example[0]} if example else {})}
