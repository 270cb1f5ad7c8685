"""The schemas of what operators are answered, by name."""

from typing import Final

from coatcheck.core import limits
from coatcheck.core.scopes import Scope
from coatcheck.core.states import Status
from coatcheck.core.tenancy import OperationMode, Revocation
from coatcheck.http.openapi_job import ATTEMPT, INPUT_ERROR, JOB_ERROR, PROGRESS, problem
from coatcheck.http.openapi_schemas import Schema, ref
from coatcheck.http.openapi_shapes import COUNT, INSTANT, JOB_ID, closed, moment, or_null, text
from coatcheck.operators.limits import LimitOrigin

_FLAG: Final[Schema] = {"type": "boolean"}
_NUMBER: Final[Schema] = {"type": "number", "minimum": 0}
_POLICY: Final[Schema] = {"type": "string", "enum": [policy.value for policy in Revocation]}

TENANT: Final = closed(
    "An account.",
    {
        "name": text("What it is known by.", limits.TENANT_CHARS_MAX),
        "created_at": INSTANT,
        "weight": {**_NUMBER, "description": "Its share of the turns, beside tenants of weight 1."},
        "paused": {**_FLAG, "description": "Whether its waiting jobs are held back."},
        "revocation": or_null(_POLICY, "What becomes of its jobs; null while it is not revoked."),
        "revoked_at": or_null(INSTANT),
        "revocation_done_at": or_null(INSTANT, "When nothing was left to do of it; null until then."),
        "revocation_by_operation": {
            "type": "object",
            "description": "Policies that stand in the place of it in single operations.",
            "additionalProperties": _POLICY,
        },
    },
)
WORK: Final = closed(
    f"How much there is of a tenant; each number goes up to {limits.TENANT_JOBS_COUNTED_MAX:,}.",
    {"tenant": text("Whose jobs."), "queued": COUNT, "running": COUNT, "finished": COUNT},
)
KEY: Final = closed(
    "What is known of an API key. The key itself is kept nowhere.",
    {
        "id": text("The part of the key that it is known by."),
        "tenant": text("Whose key it is."),
        "label": text("What it is for.", limits.KEY_LABEL_CHARS_MAX),
        "scopes": {"type": "array", "items": {"type": "string", "enum": [scope.value for scope in Scope]}},
        "live": {**_FLAG, "description": "Whether it opens anything now."},
        "created_at": INSTANT,
        "expires_at": or_null(INSTANT, "Null: it does not end by itself."),
        "revoked_at": or_null(INSTANT),
        "last_used_at": or_null(INSTANT),
    },
)
MADE_KEY: Final = closed(
    "A key that was just made, shown this once.",
    {**KEY["properties"], "key": text("The key. Keep it: it is shown nowhere again.")},
)
LIMIT: Final = closed(
    "A limit as it holds.",
    {
        "name": text("Which one."),
        "tenant": text("A tenant's name; `*` for each by itself; empty for all together."),
        "operation": text("An operation's name; empty for all together."),
        "value": or_null(_NUMBER, "0: none allowed; null: unlimited."),
        "meaning": text("The value in words."),
        "origin": {"type": "string", "enum": [origin.value for origin in LimitOrigin]},
    },
)
SPENDING: Final = closed(
    "What a tenant's jobs cost in one window, of one kind and in one operation.",
    {
        "kind": text("The kind of units."),
        "operation": text("The jobs' operation."),
        "window_began_at": INSTANT,
        "window_ends_at": INSTANT,
        "charged": {**_NUMBER, "description": "At acceptance."},
        "spent": {**_NUMBER, "description": "As jobs ran."},
    },
)
OPERATION: Final = closed(
    "An operation as a whole.",
    {
        "name": text("What it is known by."),
        "mode": {
            "type": "string",
            "enum": [mode.value for mode in OperationMode],
            "description": "open: takes and starts work. paused: takes it and starts none. draining: starts it and"
            " takes none.",
        },
        "queued": COUNT,
        "running": COUNT,
    },
)
ENTRY: Final = closed(
    "What an operator did.",
    {
        "seq": {**COUNT, "description": "Rises from entry to entry."},
        "at": INSTANT,
        "actor": text("Who did it."),
        "origin": text("From where."),
        "action": text("What was done, such as `tenant.set`."),
        "target": text("To what."),
        "tenant": or_null(text("Whose it is."), "Null where it is no tenant's."),
        "details": {"type": "object", "description": "What was changed, from what and to what."},
    },
)
FULL_ERROR: Final = closed(
    "Why a job or an attempt failed, with what its client does not see.",
    {
        **JOB_ERROR["properties"],
        "operator_detail": or_null(text("The exception with its traceback, where there was one.")),
    },
)
_JOB_FIELDS: Final[dict[str, Schema]] = {
    "id": JOB_ID,
    "tenant": text("Who handed it in."),
    "operation": text("The kind of work."),
    "operation_version": text("The version of the operation that accepted it."),
    "status": {"type": "string", "enum": [status.value for status in Status]},
    "version": {"type": "integer", "minimum": 1},
    "attempt": {**COUNT, "description": "Starts so far."},
    "counted_attempts": {**COUNT, "description": "Those of them that count."},
    "max_attempts": {"type": "integer", "minimum": 1},
    "priority": {"type": "integer", "minimum": 0, "maximum": limits.PRIORITY_MAX},
    "progress": or_null(ref("JobProgress"), "Null while nothing was reported."),
    "created_at": INSTANT,
    "started_at": or_null(INSTANT),
    "finished_at": or_null(INSTANT),
    "updated_at": INSTANT,
    "available_at": moment("The earliest start of the next attempt."),
    "deadline_at": or_null(INSTANT),
    "expires_at": or_null(INSTANT, "When the finished job will be gone."),
    "dead_lettered_at": or_null(INSTANT, "When it became a dead letter."),
    "cancel_requested": _FLAG,
    "cancel_reason": or_null(text("The reason given with it.")),
    "error": or_null(ref("FullError"), "Why it failed; null otherwise."),
    "correlation_id": text("The correlation id of the submission."),
    "chain_id": {**JOB_ID, "description": "The first job of its chain of redrives."},
    "redrive_of": or_null(JOB_ID),
    "redriven_as": or_null(JOB_ID),
    "result_type": or_null(text("The result's media type.")),
    "result_bytes": or_null(COUNT),
}
JOB: Final = closed("A job as operators see it.", _JOB_FIELDS)
JOB_IN_FULL: Final = closed(
    "The same with every start.",
    {**_JOB_FIELDS, "attempts": {"type": "array", "items": ref("FullAttempt")}},
)
FULL_ATTEMPT: Final = closed(
    "One start of a job.", {**ATTEMPT["properties"], "error": or_null(ref("FullError"), "Null unless it failed.")}
)
COUNTED: Final = closed(
    "What a dry run found.",
    {"count": COUNT, "first": {"type": "array", "items": JOB_ID, "description": "The oldest of them."}},
)
REDRIVEN: Final = closed(
    "What a run did.",
    {
        "redriven": {**COUNT, "description": "How many new jobs it made."},
        "left": {**COUNT, "description": "How many it left, because their tenants are revoked."},
        "created_until": moment("Jobs created later were not looked at; hand it back with the cursor."),
        "next_cursor": or_null(text("Where to go on; null once all were looked at.")),
    },
)


def _page(name: str, of: str) -> Schema:
    return closed(
        "One page.",
        {
            name: {"type": "array", "items": ref(of)},
            "next_cursor": or_null(text("Hand it back as `cursor`; null on the last page.")),
        },
    )


def admin_schemas() -> dict[str, Schema]:
    """All of them, with those of clients that stand in them."""
    return {
        "Tenant": TENANT,
        "TenantPage": _page("tenants", "Tenant"),
        "TenantWork": WORK,
        "Spending": SPENDING,
        "SpendingPage": _page("spending", "Spending"),
        "Key": KEY,
        "KeyPage": _page("keys", "Key"),
        "MadeKey": MADE_KEY,
        "Limit": LIMIT,
        "LimitPage": _page("limits", "Limit"),
        "Operation": OPERATION,
        "OperationPage": _page("operations", "Operation"),
        "AuditEntry": ENTRY,
        "AuditPage": _page("entries", "AuditEntry"),
        "Job": JOB,
        "JobInFull": JOB_IN_FULL,
        "JobPage": _page("jobs", "Job"),
        "FullAttempt": FULL_ATTEMPT,
        "FullError": FULL_ERROR,
        "JobProgress": PROGRESS,
        "RedriveAnswer": {"oneOf": [REDRIVEN, COUNTED]},
        "JobPayload": {"description": "What was handed in, as it came."},
        "Document": {"type": "object", "description": "OpenAPI 3.1."},
        "Problem": problem(),
        "InputError": INPUT_ERROR,
    }
