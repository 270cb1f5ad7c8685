"""The operators' API: each collection below /admin, with what answers its URLs and what its document says of them."""

from collections.abc import Mapping, Sequence
from typing import Final

from coatcheck.admission.limit_defaults import limit_defaults
from coatcheck.core import limits
from coatcheck.http.admin_audit import AuditRoutes
from coatcheck.http.admin_dead_letters import DeadLetterRoutes, RedriveWish
from coatcheck.http.admin_document import DocumentRoutes
from coatcheck.http.admin_filters import FILTERS
from coatcheck.http.admin_jobs import CancelWish, JobRoutes
from coatcheck.http.admin_keys import KeyRoutes, KeyWish, Rotation
from coatcheck.http.admin_limits import LimitRoutes, LimitWish
from coatcheck.http.admin_operations import ModeRoutes
from coatcheck.http.admin_requests import Wish
from coatcheck.http.admin_revocations import RevocationRoutes, RevokeWish
from coatcheck.http.admin_spending import SpendingRoutes
from coatcheck.http.admin_table import MADE, PAGE, THEN, AdminCollection, AdminMethods, AdminRoute, NewPayload
from coatcheck.http.admin_tenants import NewTenant, TenantChange, TenantRoutes
from coatcheck.http.services import HttpServices
from coatcheck.operators.dead_letters import DeadLetters
from coatcheck.operators.jobs import Jobs
from coatcheck.operators.keys import Keys
from coatcheck.operators.limits import Limits
from coatcheck.operators.modes import Modes
from coatcheck.operators.revocations import revocations_of
from coatcheck.operators.spending import Spendings
from coatcheck.operators.tenants import Tenants

_FILTER_TEXTS: Final = dict(
    zip(
        FILTERS,
        (
            "Only jobs of this tenant.",
            "Only jobs of this operation.",
            "Only jobs in this status.",
            "Only jobs that failed with this error category.",
            "Only jobs created then or later.",
            "Only jobs created before.",
            "Only jobs that ended then or later.",
            "Only jobs that ended before.",
        ),
        strict=True,
    )
)
_DEAD_LETTER_TEXTS: Final = {name: text for name, text in _FILTER_TEXTS.items() if name != "status"}
_WHICH: Final = {
    "tenant": "A tenant's name, `*` for each by itself; left out: all together.",
    "operation": "An operation's name; left out: all together.",
}
_HOLDING: Final = {
    "tenant": "Only limits that hold for this tenant.",
    "operation": "Only limits that hold in this operation.",
}
_STOPPED: Final = {200: "The job is cancelled.", 202: "The job runs and was told to stop."}


def admin_collections(services: HttpServices) -> Sequence[AdminCollection]:
    """All of them."""
    jobs = Jobs(services.store, services.app.policies)
    job_routes = JobRoutes(services, jobs)
    key_routes = KeyRoutes(services, Keys(services.store))
    collections = [
        _tenants(services, key_routes),
        _keys(key_routes),
        _limits(services),
        _operations(services),
        AdminCollection(
            "audit",
            "What operators did, newest first.",
            methods={
                "GET": AdminRoute(
                    AuditRoutes(services).list,
                    "List what operators did",
                    "AuditPage",
                    query={**PAGE, "tenant": "Only entries about this tenant."},
                )
            },
        ),
        _jobs(job_routes),
        *_dead_letters(DeadLetterRoutes(services, jobs, DeadLetters(services.store, jobs, services.app)), job_routes),
    ]
    document = DocumentRoutes(services, lambda: collections)
    collections.append(
        AdminCollection(
            "openapi.json",
            "This API as a document.",
            methods={"GET": AdminRoute(document.show, "This document", "Document")},
        )
    )
    return collections


def _tenants(services: HttpServices, keys: KeyRoutes) -> AdminCollection:
    store = services.store
    tenants, spending = TenantRoutes(services, Tenants(store)), SpendingRoutes(Spendings(store))
    return AdminCollection(
        "tenants",
        "Accounts.",
        "The tenant's name.",
        {
            "GET": AdminRoute(tenants.list, "List tenants by name", "TenantPage", query=PAGE),
            "POST": AdminRoute(tenants.add, "Make a tenant", "Tenant", MADE, body=NewTenant, codes=("conflict",)),
        },
        {
            "GET": AdminRoute(tenants.show, "Show a tenant", "Tenant"),
            "PATCH": AdminRoute(tenants.change, "Change what is given of a tenant", "Tenant", THEN, body=TenantChange),
        },
        {
            "pause": {"POST": AdminRoute(tenants.pause, "Hold its waiting jobs back", "Tenant", THEN, body=Wish)},
            "resume": {"POST": AdminRoute(tenants.resume, "Let its jobs start again", "Tenant", THEN, body=Wish)},
            **_revocations(services),
            "keys": {
                "GET": AdminRoute(keys.list, "List a tenant's keys, oldest first", "KeyPage"),
                "POST": AdminRoute(keys.create, "Make a key", "MadeKey", MADE, body=KeyWish, codes=("conflict",)),
            },
            "spending": {
                "GET": AdminRoute(
                    spending.list,
                    "List what a tenant's jobs cost, newest windows first",
                    "SpendingPage",
                    query=PAGE,
                    codes=("invalid-request",),
                )
            },
        },
    )


def _revocations(services: HttpServices) -> Mapping[str, AdminMethods]:
    store, policies = services.store, revocations_of(services.settings, services.app, services.store)
    routes = RevocationRoutes(services, Tenants(store), policies)
    refused = ("conflict",)
    return {
        "revoke": {"POST": AdminRoute(routes.revoke, "End a tenant", "Tenant", THEN, body=RevokeWish, codes=refused)},
        "restore": {"POST": AdminRoute(routes.restore, "Undo that", "Tenant", THEN, body=Wish, codes=refused)},
        "work": {"GET": AdminRoute(routes.show_work, "Count a tenant's jobs", "TenantWork")},
    }


def _keys(keys: KeyRoutes) -> AdminCollection:
    refused = ("conflict",)
    return AdminCollection(
        "keys",
        "API keys, each shown once, when it is made.",
        "The key's id.",
        item={"GET": AdminRoute(keys.show, "Show what is known of a key", "Key")},
        parts={
            "revoke": {"POST": AdminRoute(keys.revoke, "End a key now", "Key", THEN, body=Wish)},
            "rotate": {"POST": AdminRoute(keys.rotate, "Replace a key", "MadeKey", MADE, body=Rotation, codes=refused)},
        },
    )


def _limits(services: HttpServices) -> AdminCollection:
    defaults = limit_defaults(services.settings, services.app)
    routes = LimitRoutes(services, Limits(services.store, defaults, services.app.operations))
    bad = ("invalid-request",)
    clear = AdminRoute(routes.clear, "Let settings and declarations hold again", "Limit", THEN, _WHICH, codes=bad)
    return AdminCollection(
        "limits",
        "What is allowed, where that comes from, and how it is changed at run time.",
        "Which limit, such as `queued` or `budget:tokens`.",
        {"GET": AdminRoute(routes.list, "List limits as they hold", "LimitPage", query=_HOLDING)},
        {
            "GET": AdminRoute(routes.show, "Show a limit as it holds", "Limit", query=_WHICH, codes=bad),
            "PUT": AdminRoute(routes.set, "Set a limit", "Limit", THEN, _WHICH, LimitWish, ("conflict",)),
            "DELETE": clear,
        },
    )


def _operations(services: HttpServices) -> AdminCollection:
    routes = ModeRoutes(services, Modes(services.store, services.app.operations))
    return AdminCollection(
        "operations",
        "Operations as a whole: which take work, and which start it.",
        "The operation's name.",
        {"GET": AdminRoute(routes.list, "List operations", "OperationPage")},
        {"GET": AdminRoute(routes.show, "Show an operation", "Operation")},
        {
            "pause": {"POST": AdminRoute(routes.pause, "Start none of its jobs", "Operation", THEN, body=Wish)},
            "resume": {
                "POST": AdminRoute(routes.resume, "Take and start its work again", "Operation", THEN, body=Wish)
            },
            "drain": {"POST": AdminRoute(routes.drain, "Take no new work for it", "Operation", THEN, body=Wish)},
        },
    )


def _jobs(jobs: JobRoutes) -> AdminCollection:
    return AdminCollection(
        "jobs",
        "Jobs of all tenants.",
        "The job's id.",
        {"GET": AdminRoute(jobs.list, "List jobs, newest first", "JobPage", query={**PAGE, **_FILTER_TEXTS})},
        _one_job(jobs),
        {
            **_payload(jobs),
            "cancel": {
                "POST": AdminRoute(
                    jobs.cancel,
                    "Cancel a job",
                    "Job",
                    _STOPPED,
                    body=CancelWish,
                    codes=("job-expired", "job-already-finished"),
                )
            },
        },
    )


def _dead_letters(dead_letters: DeadLetterRoutes, jobs: JobRoutes) -> Sequence[AdminCollection]:
    filtered = {**PAGE, **_DEAD_LETTER_TEXTS}
    refused = ("job-expired", "job-not-failed", "conflict", "invalid-parameter")
    redrive = AdminRoute(dead_letters.redrive, "Run a job again", "Job", MADE, body=NewPayload, codes=refused)
    many = AdminRoute(
        dead_letters.redrive_many,
        "Run many jobs again, oldest first",
        "RedriveAnswer",
        {200: "What was done; with `dry_run`, what would be."},
        body=RedriveWish,
        codes=("invalid-cursor",),
    )
    return [
        AdminCollection(
            "dead-letters",
            "Failed jobs that nobody has run again yet.",
            "The job's id.",
            {"GET": AdminRoute(dead_letters.list, "List dead letters, newest first", "JobPage", query=filtered)},
            _one_job(jobs),
            {**_payload(jobs), "redrive": {"POST": redrive}},
        ),
        AdminCollection(
            "redrives",
            f"Runs over many dead letters, up to {limits.REDRIVES_MAX:,} by one request.",
            methods={"POST": many},
        ),
    ]


def _one_job(jobs: JobRoutes) -> AdminMethods:
    return {"GET": AdminRoute(jobs.show, "Show a job with its starts", "JobInFull", codes=("job-expired",))}


def _payload(jobs: JobRoutes) -> Mapping[str, AdminMethods]:
    text = "Read what was handed in; that it was read stands in the audit log"
    return {"payload": {"GET": AdminRoute(jobs.show_payload, text, "JobPayload", codes=("job-expired",))}}
