"""Every problem a client can meet, in one table, and the one exception that carries a refusal to the edge.

One code stands for one decision a caller can take. The type of a problem (RFC 9457) is the page /problems/{code}.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """One code: its usual status first, what it means, and what its reader can do about it."""

    code: str
    statuses: tuple[int, ...]
    title: str
    meaning: str
    remedy: str

    @property
    def status(self) -> int:
        """The HTTP status it has unless the refusal names another of `statuses`."""
        return self.statuses[0]


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault of a body: where it is (a JSON Pointer, RFC 6901) and what is wrong there."""

    pointer: str
    detail: str


class Refused(Exception):
    """The request is refused. `detail` is for the client; `members` are added to the problem's JSON.

    `status` stands only where the code has several. `headers` are names and values in visible ASCII.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Sequence[tuple[str, str]] = (),
        members: Mapping[str, str] = MappingProxyType({}),
        status: int | None = None,
    ) -> None:
        super().__init__(code, detail)
        self.kind = PROBLEMS[code]
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = tuple(headers)
        self.members = members
        self.status = self.kind.status if status is None else status


_KINDS = (
    ProblemKind(
        "malformed-json",
        (400,),
        "The body is not acceptable JSON",
        "The body is empty, is not UTF-8, is not JSON, or uses a form that has no single meaning: duplicate keys, NaN "
        "or Infinity, numbers outside a 64-bit float, half of a surrogate pair, U+0000, or more than 64 levels.",
        "Send one well-formed JSON document. The detail says where reading stopped. The idempotency key is still free.",
    ),
    ProblemKind(
        "invalid-header",
        (400,),
        "A request header is not valid",
        "A header this service reads is malformed, stands twice, or asks for what the operation does not allow, such "
        "as a deadline in the past.",
        "Correct the header named in the detail and send the request again.",
    ),
    ProblemKind(
        "invalid-parameter",
        (400,),
        "A query parameter is not valid",
        "A query parameter is unknown, stands twice, or has a value outside its range.",
        "Correct or remove the parameter named in the detail.",
    ),
    ProblemKind(
        "idempotency-key-required",
        (400,),
        "An idempotency key is required",
        "This operation accepts work only with an Idempotency-Key header, so that a retry cannot do it twice.",
        "Send Idempotency-Key with a value of your own, new for each piece of work and the same for each retry.",
    ),
    ProblemKind(
        "invalid-cursor",
        (400,),
        "The cursor is not valid",
        "The cursor was not given out by this service, or belongs to a list with other parameters.",
        "Start again without a cursor, or follow the `next` link exactly as it was given.",
    ),
    ProblemKind(
        "unauthenticated",
        (401,),
        "Who is asking is not known",
        "No credential came with the request, or several, or one that is not good: unknown, wrong, expired or revoked. "
        "Which of these it was is not told.",
        "Send one credential, as `Authorization: Bearer` or, with an API key, as `apikey`. If it was good before, ask "
        "the operator.",
    ),
    ProblemKind(
        "forbidden",
        (403,),
        "The credential does not allow this",
        "The credential is good, and does not have the scope that this takes; or it is a view token, which reads one "
        "job and does nothing else.",
        "Use a credential that has the scope named in the detail.",
    ),
    ProblemKind(
        "tenant-suspended",
        (403,),
        "The tenant is suspended",
        "An operator has revoked the tenant: no new work is taken for it. Jobs it handed in can be read as long as "
        "they are kept.",
        "Nothing was accepted, and trying again does not help. Ask the operator.",
    ),
    ProblemKind(
        "not-found",
        (404,),
        "There is nothing here",
        "No such path or job is known here. A job is found only under its own operation, by the tenant that handed "
        "it in, and some time after its end it is forgotten altogether.",
        "Check the URL against the job's Location or status_url.",
    ),
    ProblemKind(
        "method-not-allowed",
        (405,),
        "This method is not allowed here",
        "The resource exists and does not support this method.",
        "Use one of the methods in the Allow header.",
    ),
    ProblemKind(
        "not-acceptable",
        (406,),
        "The answer cannot be given in an accepted form",
        "The Accept header rules out every form this resource has.",
        "Accept application/json; for a live stream of one job, text/event-stream.",
    ),
    ProblemKind(
        "request-timeout",
        (408,),
        "The request took too long to arrive",
        "The body did not arrive completely within the time this server waits for one. Nothing was stored.",
        "Send the request again, with the same idempotency key.",
    ),
    ProblemKind(
        "job-not-finished",
        (409,),
        "The job is not finished",
        "The job is still queued or running, so that it has no result and cannot be erased.",
        "Wait as long as Retry-After says and ask again, or cancel the job first.",
    ),
    ProblemKind(
        "job-failed",
        (409,),
        "The job failed",
        "The job ended without a result because its work failed.",
        "Read the `error` of the job at its status_url.",
    ),
    ProblemKind(
        "job-cancelled",
        (409,),
        "The job was cancelled",
        "The job ended without a result because it was cancelled.",
        "Hand in the work again if it is still wanted, with a new idempotency key.",
    ),
    ProblemKind(
        "job-already-finished",
        (409,),
        "The job has already finished",
        "The job succeeded or failed before it could be cancelled; an end is final.",
        "Read the job at its status_url.",
    ),
    ProblemKind(
        "job-not-failed",
        (409,),
        "The job has not failed",
        "An operator asked for the job to be run again. Only a failed job is.",
        "Read where the job stands; hand the work in again if it is wanted once more.",
    ),
    ProblemKind(
        "conflict",
        (409,),
        "Things are not so that this could be done",
        "An operator asked for a change that does not fit what there is: a tenant of a name that is taken, or a key "
        "beside too many others, for a revoked tenant, or in the place of one that has ended.",
        "Look at what there is, and decide anew.",
    ),
    ProblemKind(
        "job-expired",
        (410, 409),
        "The job has expired",
        "The job ended, was kept for its time or erased on request, and is gone (410). When work is handed in with "
        "the idempotency key of such a job, the answer is 409 with the URL of that job.",
        "Nothing of it can be read any more. To do the work again, hand it in with a new idempotency key.",
    ),
    ProblemKind(
        "result-expired",
        (410,),
        "The result has expired",
        "The job succeeded; its result was kept for its time and is gone, while the job itself is still kept.",
        "Hand in the work again, with a new idempotency key, to have the result made anew.",
    ),
    ProblemKind(
        "payload-too-large",
        (413,),
        "The body is too large",
        "The body is larger than this operation accepts.",
        "Send a smaller body; the detail names the largest size in bytes.",
    ),
    ProblemKind(
        "unsupported-media-type",
        (415,),
        "The body's media type is not supported",
        "The Content-Type header is missing, stands twice, or names something other than JSON in UTF-8.",
        "Send Content-Type: application/json.",
    ),
    ProblemKind(
        "invalid-request",
        (422,),
        "The body does not fit the operation",
        "The body is JSON and does not fit the operation's schema. Each entry of `errors` points at one fault.",
        "Correct the places that `errors` points at. The idempotency key is still free.",
    ),
    ProblemKind(
        "idempotency-key-reused",
        (422,),
        "The idempotency key was used for another body",
        "The same tenant handed in a different body for this operation with the same key before.",
        "Use a new key for new work, and repeat the very same body to retry.",
    ),
    ProblemKind(
        "rate-limited",
        (429,),
        "The tenant hands in work too fast",
        "The tenant has handed in as many jobs as its rate allows for now. Nothing was accepted, and the idempotency "
        "key is still free.",
        "Wait as long as Retry-After says and send the request again, with the same idempotency key; RateLimit on "
        "every answer says how many may still come at once.",
    ),
    ProblemKind(
        "budget-exceeded",
        (429,),
        "The tenant's budget does not allow this work now",
        "What this work costs is more than is left of a budget of the tenant in the current window. Nothing was "
        "accepted or charged, and the idempotency key is still free.",
        "Wait as long as Retry-After says, which is until the window ends, and send the request again with the same "
        "idempotency key; or hand in work that costs less.",
    ),
    ProblemKind(
        "polling-too-fast",
        (429,),
        "The tenant reads its jobs too often",
        "The tenant has asked for its jobs as often as its rate of reads allows for now. The jobs themselves go on.",
        "Wait as long as Retry-After says. Follow the Retry-After of each job, or let `Prefer: wait` or a stream tell "
        "of its end: each counts as one read.",
    ),
    ProblemKind(
        "headers-too-large",
        (431,),
        "The request headers are too large",
        "All request headers together are larger than this server accepts.",
        "Send fewer or shorter headers.",
    ),
    ProblemKind(
        "too-many-queued",
        (429,),
        "Too many jobs of this tenant are queued",
        "As many jobs of this tenant wait as its limit lets in, in this operation or in all of them. Nothing was "
        "stored, and the idempotency key is still free.",
        "Wait as long as Retry-After says and send the request again, with the same idempotency key. A job that "
        "starts, is cancelled or expires makes room.",
    ),
    ProblemKind(
        "internal-error",
        (500,),
        "Something went wrong in the service",
        "The service met a fault of its own. It was logged under the correlation id.",
        "Try again with the same idempotency key; if it stays, give the operator the correlation id.",
    ),
    ProblemKind(
        "saturated",
        (503,),
        "The service has no room for this now",
        "The queue is as deep or as old as it may be, or so long that the job could not start in time; or all tenants "
        "together hand in work, or read jobs, faster than the service allows; or as many live streams are "
        "open as this server holds; or the bodies and results of other requests take all the memory it has for them. "
        "Nothing was accepted.",
        "Wait as long as Retry-After says and send the request again; a job can be read without a stream.",
    ),
    ProblemKind(
        "store-unavailable",
        (503,),
        "The store is not available",
        "The store that keeps the jobs cannot answer now. Nothing was accepted, unless the connection to a database "
        "broke in the midst of a commit: then nobody knows.",
        "Wait as long as Retry-After says and send the request again, with the same idempotency key.",
    ),
    ProblemKind(
        "identity-provider-unavailable",
        (503,),
        "The identity provider is not available",
        "The keys that tokens are checked with were not yet seen by this server and cannot be fetched now. It says "
        "nothing about the token.",
        "Wait as long as Retry-After says and send the request again, with the same token.",
    ),
    ProblemKind(
        "draining",
        (503,),
        "No new work is accepted here now",
        "This server is shutting down, or the operation is drained by its operators: what was accepted is finished, "
        "and no new work is accepted.",
        "Wait as long as Retry-After says and send the request again, with the same idempotency key.",
    ),
)

PROBLEMS: dict[str, ProblemKind] = {kind.code: kind for kind in _KINDS}
