"""From a path to what answers it: by look-up, since no two operations' paths can meet."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from coatcheck.app import Operation
from coatcheck.http.access import ADMIN, CANCEL, METRICS, OPEN, READ, SUBMIT, VIEW, Access
from coatcheck.http.admin_routes import admin_collections
from coatcheck.http.admin_table import AdminCollection, AdminMethods
from coatcheck.http.aside import Aside
from coatcheck.http.commands import Cancel, Erase
from coatcheck.http.doorkeeper import Doorkeeper
from coatcheck.http.exchange import Exchange
from coatcheck.http.health import Health
from coatcheck.http.lists import ALL_JOBS_PATH, ListAttempts, ListJobs
from coatcheck.http.reads import Answerer, CountedRead
from coatcheck.http.refusals import method_not_allowed
from coatcheck.http.result import ReadResult
from coatcheck.http.room import Room
from coatcheck.http.services import HttpServices
from coatcheck.http.status import ReadStatus
from coatcheck.http.submit import Submit
from coatcheck.http.undeclared import UNDECLARED_PATH, parse_job_path
from coatcheck.http.views import BeginViewSession, MakeViewToken

OperationAnswerer: TypeAlias = Callable[[Exchange, Operation], Awaitable[None]]


class Method(NamedTuple):
    """What answers a method, and what it asks of who calls it."""

    answer: Answerer
    access: Access


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of URL: its route as metrics and documents name it, and its methods."""

    route: str
    methods: Mapping[str, Method]
    operation: Operation | None = None

    @property
    def allow(self) -> str:
        return ", ".join(sorted(self.methods))


class Resources:
    """All URLs but those of the documentation."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services
        self._exact: dict[str, Resource] = {}
        self._jobs: dict[str, Resource] = {}
        self._parts: dict[str, Mapping[str, Resource]] = {}
        self._read = ReadStatus(services)
        policies = [operation.policy for operation in services.app.operations.values()]
        self._submit = Submit(services, Room(policy.payload_bytes_max for policy in policies), Aside())
        self._add_service_routes()
        for operation in services.app.operations.values():
            self._add_operation(operation)
        for collection in admin_collections(services):
            self._add_admin(collection)

    def find(self, path: str) -> tuple[Resource, str] | None:
        """The resource at a path and the job id in it ("" where there is none)."""
        resource = self._exact.get(path)
        if resource is not None:
            return resource, ""
        parent, _, last = path.rpartition("/")
        resource = self._jobs.get(parent)
        if resource is not None:
            return resource, last
        collection, _, job_id = parent.rpartition("/")
        parts = self._parts.get(collection)
        resource = None if parts is None else parts.get(last)
        return self._find_undeclared(path) if resource is None else (resource, job_id)

    def _find_undeclared(self, path: str) -> tuple[Resource, str] | None:
        found = parse_job_path(path)
        if found is None or found[0].name in self._services.app.operations:
            return None
        operation, job_id, part = found
        job, parts = self._job_resources(operation, UNDECLARED_PATH)
        resource = job if part is None else parts.get(part)
        return None if resource is None else (resource, job_id)

    def _add_service_routes(self) -> None:
        health = Health(self._services)
        routes = {
            "/livez": _reading(health.live, OPEN),
            "/readyz": _reading(health.ready, OPEN),
            "/metrics": _reading(health.metrics, METRICS),
            ALL_JOBS_PATH: self._reading_jobs(ListJobs(self._services), READ),
        }
        self._exact.update({path: Resource(path, methods) for path, methods in routes.items()})

    def _add_operation(self, operation: Operation) -> None:
        path = operation.path
        collection = {"POST": Method(_bound(self._submit, operation), SUBMIT)}
        collection |= self._reading_jobs(_bound(ListJobs(self._services), operation), READ)
        self._exact[path] = Resource(path, collection, operation)
        self._jobs[path], self._parts[path] = self._job_resources(operation, path)

    def _job_resources(self, operation: Operation, route: str) -> tuple[Resource, Mapping[str, Resource]]:
        """A job of the operation, and the parts of it by name. `route`: the collection, as metrics name it."""
        services, job_path = self._services, route + "/{id}"

        def bound(answerer: OperationAnswerer) -> Answerer:
            return _bound(answerer, operation)

        job = {"DELETE": Method(bound(Erase(services)), CANCEL), **self._reading_jobs(bound(self._read), VIEW)}
        parts = {
            "result": self._reading_jobs(bound(ReadResult(services)), VIEW),
            "cancel": {"POST": Method(bound(Cancel(services)), CANCEL)},
            "attempts": self._reading_jobs(bound(ListAttempts(services)), VIEW),
        }
        views = services.views
        if views is not None:
            parts["view-token"] = {"POST": Method(bound(MakeViewToken(services, views)), READ)}
            parts["view-session"] = {"POST": Method(bound(BeginViewSession(services)), VIEW)}
        resources = {name: Resource(f"{job_path}/{name}", methods, operation) for name, methods in parts.items()}
        return Resource(job_path, job, operation), resources

    def _add_admin(self, collection: AdminCollection) -> None:
        path, item_path = f"/admin/{collection.name}", f"/admin/{collection.name}/{{id}}"
        if collection.methods:
            self._exact[path] = Resource(path, _for_operators(collection.methods))
        if collection.item:
            self._jobs[path] = Resource(item_path, _for_operators(collection.item))
        self._parts[path] = {
            name: Resource(f"{item_path}/{name}", _for_operators(methods)) for name, methods in collection.parts.items()
        }

    def _reading_jobs(self, answerer: Answerer, access: Access) -> dict[str, Method]:
        return _reading(CountedRead(self._services, answerer), access)


def answer_with(resource: Resource, job_id: str, exchange: Exchange, doorkeeper: Doorkeeper) -> Awaitable[None]:
    """The resource's answer, to be awaited.

    Raises:
        Refused: `method-not-allowed`, what the doorkeeper refuses, or whatever the resource does.
    """
    exchange.route = resource.route
    exchange.operation = resource.operation
    exchange.job_id = job_id
    method = resource.methods.get(exchange.method)
    if method is None:
        raise method_not_allowed(resource.allow)
    if doorkeeper.admit(exchange, method.access):
        return method.answer(exchange)
    return _answer_later(method, exchange, doorkeeper)


async def _answer_later(method: Method, exchange: Exchange, doorkeeper: Doorkeeper) -> None:
    await doorkeeper.admit_later(exchange, method.access)
    await method.answer(exchange)


def _bound(answerer: OperationAnswerer, operation: Operation) -> Answerer:
    return lambda exchange: answerer(exchange, operation)


def _reading(answer: Answerer, access: Access) -> dict[str, Method]:
    return {"GET": Method(answer, access), "HEAD": Method(answer, access)}


def _for_operators(routes: AdminMethods) -> dict[str, Method]:
    methods = {method: Method(route.answer, ADMIN) for method, route in routes.items()}
    return {**methods, "HEAD": methods["GET"]} if "GET" in methods else methods
