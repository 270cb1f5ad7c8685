"""The operators' API as a table: each collection below /admin, with what answers its URLs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from coatcheck.admission.limit_defaults import limit_defaults
from coatcheck.http.admin_audit import AuditRoutes
from coatcheck.http.admin_dead_letters import DeadLetterRoutes
from coatcheck.http.admin_jobs import JobRoutes
from coatcheck.http.admin_keys import KeyRoutes
from coatcheck.http.admin_limits import LimitRoutes
from coatcheck.http.admin_operations import ModeRoutes
from coatcheck.http.admin_revocations import RevocationRoutes
from coatcheck.http.admin_spending import SpendingRoutes
from coatcheck.http.admin_tenants import TenantRoutes
from coatcheck.http.reads import Answerer
from coatcheck.http.services import HttpServices
from coatcheck.operators.dead_letters import DeadLetters
from coatcheck.operators.jobs import Jobs
from coatcheck.operators.keys import Keys
from coatcheck.operators.limits import Limits
from coatcheck.operators.modes import Modes
from coatcheck.operators.revocations import revocations_of
from coatcheck.operators.spending import Spendings
from coatcheck.operators.tenants import Tenants

Answerers: TypeAlias = Mapping[str, Answerer]


@dataclass(frozen=True, slots=True)
class AdminCollection:
    """What answers /admin/{name}, /admin/{name}/{id} and, by their names, /admin/{name}/{id}/{part}.

    An answerer finds the id in `exchange.item`. GET is answered to HEAD as well.
    """

    name: str
    methods: Answerers
    item: Answerers = field(default_factory=dict)
    parts: Mapping[str, Answerers] = field(default_factory=dict)


def admin_collections(services: HttpServices) -> Sequence[AdminCollection]:
    """All of them."""
    store, app = services.store, services.app
    tenants = TenantRoutes(services, Tenants(store))
    keys = KeyRoutes(services, Keys(store))
    spending = SpendingRoutes(Spendings(store))
    limits = LimitRoutes(services, Limits(store, limit_defaults(services.settings, app), app.operations))
    operations = ModeRoutes(services, Modes(store, app.operations))
    audit = AuditRoutes(services)
    revocations = RevocationRoutes(services, Tenants(store), revocations_of(services.settings, app, store))
    return [
        AdminCollection(
            "tenants",
            {"GET": tenants.list, "POST": tenants.add},
            {"GET": tenants.show, "PATCH": tenants.change},
            {
                "pause": {"POST": tenants.pause},
                "resume": {"POST": tenants.resume},
                "revoke": {"POST": revocations.revoke},
                "restore": {"POST": revocations.restore},
                "work": {"GET": revocations.show_work},
                "keys": {"GET": keys.list, "POST": keys.create},
                "spending": {"GET": spending.list},
            },
        ),
        AdminCollection(
            "keys", {}, {"GET": keys.show}, {"revoke": {"POST": keys.revoke}, "rotate": {"POST": keys.rotate}}
        ),
        AdminCollection(
            "limits", {"GET": limits.list}, {"GET": limits.show, "PUT": limits.set, "DELETE": limits.clear}
        ),
        AdminCollection(
            "operations",
            {"GET": operations.list},
            {"GET": operations.show},
            {
                "pause": {"POST": operations.pause},
                "resume": {"POST": operations.resume},
                "drain": {"POST": operations.drain},
            },
        ),
        AdminCollection("audit", {"GET": audit.list}),
        *_job_collections(services),
    ]


def _job_collections(services: HttpServices) -> Sequence[AdminCollection]:
    room = Jobs(services.store, services.app.policies)
    jobs = JobRoutes(services, room)
    dead_letters = DeadLetterRoutes(services, room, DeadLetters(services.store, room, services.app))
    return [
        AdminCollection(
            "jobs",
            {"GET": jobs.list},
            {"GET": jobs.show},
            {"payload": {"GET": jobs.show_payload}, "cancel": {"POST": jobs.cancel}},
        ),
        AdminCollection(
            "dead-letters",
            {"GET": dead_letters.list},
            {"GET": jobs.show},
            {"payload": {"GET": jobs.show_payload}, "redrive": {"POST": dead_letters.redrive}},
        ),
        AdminCollection("redrives", {"POST": dead_letters.redrive_many}),
    ]
