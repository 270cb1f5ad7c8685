"""Credentials: one that was revoked is dead in every process, and an odd one is refused and troubles nobody."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from coatcheck.testing.waiting import wait_until
from contract.conftest import Serve
from harness.http import problem
from harness.server import QUIET, Server
from harness.stage import Stage

OPERATOR_KEY = "the-operators-key-of-the-bug-bank-only"
GUARDED = QUIET | {"auth": "keys", "operator_key": OPERATOR_KEY}


@contextmanager
def caller(server: Server, key: str) -> Iterator[httpx.Client]:
    """A client that shows this key."""
    with httpx.Client(base_url=server.url, timeout=30, headers={"Authorization": f"Bearer {key}"}) as http:
        yield http


def operate(server: Server, path: str, body: Any = None) -> Mapping[str, Any]:
    """What an operator does over HTTP, which must succeed."""
    with caller(server, OPERATOR_KEY) as http:
        answer = http.post(f"/admin/{path}", json={} if body is None else body)
        assert answer.is_success, answer.text
        done: Mapping[str, Any] = answer.json()
        return done


def new_key(server: Server, tenant: str) -> Mapping[str, Any]:
    return operate(server, f"tenants/{tenant}/keys")


def test_bb_086_a_revoked_key_is_dead_in_every_process(serve: Serve) -> None:
    """Known keys are remembered, and forgotten when anything is revoked; what was handed in before goes on."""
    servers = [serve(settings=GUARDED), serve("--roles", "api", settings=GUARDED)]
    operate(servers[0], "tenants", {"name": "acme"})
    revoked, kept = new_key(servers[0], "acme"), new_key(servers[1], "acme")
    urls = []
    for server in servers:
        with caller(server, revoked["key"]) as http:
            answer = http.post("/v1/anything", json={})
            assert answer.status_code == 202, answer.text
            urls.append(answer.json()["status_url"])
    operate(servers[1], f"keys/{revoked['id']}/revoke")

    def are_all_dead() -> bool:
        statuses = []
        for server in servers:
            with caller(server, revoked["key"]) as http:
                statuses.append(http.get("/v1/jobs").status_code)
        assert set(statuses) <= {200, 401}
        return set(statuses) == {401}

    wait_until(are_all_dead, "the key to be dead in every process")
    with caller(servers[1], kept["key"]) as http:
        wait_until(lambda: all(http.get(url).json()["done"] for url in urls), "the work to be done")
        assert {http.get(url).json()["status"] for url in urls} == {"succeeded"}


def test_bb_086_a_stream_that_is_open_ends_with_its_key(serve: Serve, stage: Stage) -> None:
    server = serve(settings=GUARDED)
    operate(server, "tenants", {"name": "acme"})
    key = new_key(server, "acme")
    with caller(server, key["key"]) as http:
        url = http.post("/v1/tasks", json=stage.task("wait", "return")).json()["status_url"]
        stage.wait_for_starts()
        with http.stream("GET", url, headers={"Accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines()
            assert any(line.startswith("event:") for line in lines)
            operate(server, f"keys/{key['id']}/revoke")
            assert "event: done" not in list(lines), "the stream ends, and the job does not"
        problem(http.get(url), 401, "unauthenticated")
    stage.go()


ODD: tuple[list[tuple[bytes, bytes]], ...] = (
    [(b"Authorization", b"Bearer")],
    [(b"Authorization", b"")],
    [(b"apikey", b"")],
    [(b"Authorization", b"Bearer " + b"x" * 10_000)],
    [(b"Authorization", b"Bearer \xff\xfe\xc3\xa9")],
    [(b"Authorization", "Bearer ключ".encode())],
    [(b"Authorization", b"Bearer cck_000000000000_" + b"\xff" * 43)],
    [(b"Authorization", b"Bearer null")],
    [(b"Authorization", b"Negotiate YII=")],
)


def test_bb_087_an_odd_credential_is_refused_and_troubles_nobody(serve: Serve) -> None:
    server = serve(settings=GUARDED)
    operate(server, "tenants", {"name": "acme"})
    good = new_key(server, "acme")["key"]
    twice = [(b"Authorization", b"Bearer " + good.encode())] * 2
    both = [twice[0], (b"apikey", good.encode())]
    with httpx.Client(base_url=server.url, timeout=30) as http:
        for headers in (*ODD, twice, both):
            answer = http.post("/v1/anything", json={}, headers=headers)
            problem(answer, 401, "unauthenticated")
            assert answer.headers["www-authenticate"]
    with caller(server, good) as http:
        assert http.post("/v1/anything", json={}).status_code == 202
    assert not server.log_lines("request_failed")


@pytest.mark.parametrize("scopes", [[""], ["unheard-of"], ["read", "read"], [None], "read"])
def test_bb_087_a_key_that_makes_no_sense_is_refused_when_it_is_made(serve: Serve, scopes: Any) -> None:
    server = serve("--roles", "api", settings=GUARDED)
    operate(server, "tenants", {"name": "acme"})
    with caller(server, OPERATOR_KEY) as http:
        problem(http.post("/admin/tenants/acme/keys", json={"scopes": scopes}), 422, "invalid-request")
        assert http.get("/admin/tenants/acme/keys").json()["keys"] == []


def test_bb_040_a_key_of_one_tenant_is_free_to_another(serve: Serve) -> None:
    server = serve(settings=GUARDED)
    jobs = {}
    for tenant in ("acme", "zenith"):
        operate(server, "tenants", {"name": tenant})
        with caller(server, new_key(server, tenant)["key"]) as http:
            answers = [http.post("/v1/anything", json={}, headers={"Idempotency-Key": "one"}) for _ in range(2)]
            assert [answer.status_code for answer in answers] == [202, 202]
            assert [answer.headers.get("idempotent-replayed") for answer in answers] == [None, "true"]
            jobs[tenant] = {answer.json()["id"] for answer in answers}
            other = http.post("/v1/anything", json={"another": 1}, headers={"Idempotency-Key": "one"})
            problem(other, 422, "idempotency-key-reused")
    assert {len(ids) for ids in jobs.values()} == {1}
    assert not jobs["acme"] & jobs["zenith"]


TENANTS = ("*", "default", "admin", "..", "%00", "a/b", "$GROUP", "null", "-", "'; DROP TABLE job; --")


def test_bb_093_a_tenant_may_have_any_name_that_can_be_one(serve: Serve) -> None:
    """What has a meaning elsewhere has none here, or is refused when the tenant is made."""
    server = serve(settings=GUARDED | {"auth": "gateway", "gateway_secrets": OPERATOR_KEY})
    made = []
    with caller(server, OPERATOR_KEY) as http:
        for name in TENANTS:
            answer = http.post("/admin/tenants", json={"name": name})
            assert answer.status_code in (201, 422), answer.text
            made += [name] if answer.status_code == 201 else []
    assert "default" in made
    with httpx.Client(base_url=server.url, timeout=30, headers={"X-Gateway-Secret": OPERATOR_KEY}) as http:
        for name in TENANTS:
            answer = http.post("/v1/anything", json={}, headers={"X-Consumer-Username": name})
            assert answer.status_code == (202 if name in made and " " not in name else 401), name
    assert not server.log_lines("request_failed")


def test_bb_107_a_tenant_that_floods_under_many_keys_delays_another_by_one_turn(serve: Serve) -> None:
    server = serve("--roles", "api", settings=GUARDED)
    keys: dict[str, list[str]] = {}
    for tenant, count in (("flood", 10), ("trickle", 1)):
        operate(server, "tenants", {"name": tenant})
        keys[tenant] = [new_key(server, tenant)["key"] for _ in range(count)]
    for key in keys["flood"]:
        with caller(server, key) as http:
            for _ in range(10):
                assert http.post("/v1/anything", json={}).status_code == 202
    with caller(server, keys["trickle"][0]) as http:
        for _ in range(5):
            assert http.post("/v1/anything", json={}).status_code == 202
    serve("--roles", "worker", "--workers", "1", "--concurrency", "1", settings=QUIET)
    started = {tenant: starts(server, keys[tenant][0]) for tenant in keys}
    last = max(started["trickle"])
    assert len([at for at in started["flood"] if at < last]) <= 2 * len(started["trickle"])


def starts(server: Server, key: str) -> list[str]:
    """When each of a tenant's jobs started, once all of them have ended."""
    with caller(server, key) as http:
        found: list[list[Mapping[str, Any]]] = []

        def are_done() -> bool:
            found.append(http.get("/v1/jobs?limit=200").json()["jobs"])
            return all(job["done"] for job in found[-1])

        wait_until(are_done, "all jobs to end", 60)
        return [str(job["started_at"]) for job in found[-1]]
