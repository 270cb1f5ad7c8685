"""A process's life: what it starts, how it drains, and what keeps it from starting."""

import asyncio
import os
import signal
import sys
import types
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.routing import Mount
from tiny_shop import Order, app

from coatcheck.app import App
from coatcheck.core.job import JobRecord
from coatcheck.core.problems import Refused
from coatcheck.core.states import Status
from coatcheck.runtime import Runtime, StartRefused, find_app_ref
from coatcheck.service import Service
from coatcheck.serving import StopSignals, serve
from coatcheck.settings import Settings
from coatcheck.store.clock import SystemClock
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.waiting import wait_until_async

APP_REF = "tiny_shop:app"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in list(os.environ):
        if name.startswith("COATCHECK_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return Settings(port=0, drain_delay_s=0.3, grace_s=20)


def changed(settings: Settings, **changes: Any) -> Settings:
    return settings.model_copy(update=changes)


class Running:
    """A served process, in this one."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.signals = StopSignals(runtime.clock)
        self.urls: list[str | None] = []
        self.ending = asyncio.create_task(serve(runtime, self.signals, self.urls.append))

    async def client(self) -> httpx.AsyncClient:
        await wait_until_async(lambda: bool(self.urls) or self.ending.done(), "the start", 30)
        if not self.urls:
            await self.ending
        return httpx.AsyncClient(base_url=self.urls[0] or "")


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[tuple[Running, httpx.AsyncClient]]:
    served = Running(Runtime(app, settings, APP_REF))
    client = await served.client()
    try:
        yield served, client
    finally:
        await client.aclose()
        served.signals.first.set()
        served.signals.second.set()
        await served.ending


async def started_job(client: httpx.AsyncClient, seconds: float) -> dict[str, Any]:
    answer = await client.post("/orders", json={"title": "Emma", "seconds": seconds})
    assert answer.status_code == 202
    job: dict[str, Any] = answer.json()

    async def has_started() -> bool:
        return bool((await client.get(job["status_url"])).json()["status"] != "queued")

    await wait_until_async(has_started, "the job to start", 30)
    return job


async def stored(settings: Settings, job_id: str) -> JobRecord:
    runtime = Runtime(app, changed(settings, roles=("api",)))
    await runtime.start()
    found = await runtime.store.find_job("default", job_id, runtime.clock.now())
    await runtime.stop()
    assert isinstance(found, JobRecord)
    return found


async def test_a_drain_answers_503_ends_waits_and_lets_jobs_finish(settings: Settings) -> None:
    async with running(settings) as (served, client):
        job = await started_job(client, 1.0)
        waiting = asyncio.create_task(client.get(job["status_url"], headers={"Prefer": "wait=20"}))
        watch = served.runtime
        await wait_until_async(lambda: watch.draining.has_begun or not waiting.done(), "the wait")
        served.signals.receive(signal.SIGTERM)
        await wait_until_async(lambda: watch.draining.has_begun, "the drain")
        refused = await client.post("/orders", json={"title": "Emma"})
        assert (refused.status_code, refused.json()["code"]) == (503, "draining")
        assert "Retry-After" in refused.headers
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/livez")).status_code == 200
        assert (await waiting).status_code == 200
        assert await served.ending == 0
    assert (await stored(settings, job["id"])).status is Status.SUCCEEDED


async def test_a_second_signal_gives_running_jobs_back_uncounted(settings: Settings) -> None:
    async with running(changed(settings, grace_s=600.0)) as (served, client):
        job = await started_job(client, 600)
        served.signals.receive(signal.SIGTERM)
        await wait_until_async(lambda: served.runtime.draining.has_begun, "the drain")
        served.signals.second.set()
        assert await served.ending == 128 + signal.SIGTERM
    found = await stored(settings, job["id"])
    assert (found.status, found.attempt, found.counted_attempts) == (Status.QUEUED, 1, 0)


async def test_the_grace_time_is_kept(settings: Settings) -> None:
    async with running(changed(settings, grace_s=0.2)) as (served, client):
        job = await started_job(client, 600)
        served.signals.receive(signal.SIGINT)
        assert await served.ending == 0
    assert (await stored(settings, job["id"])).status is Status.QUEUED


async def test_signals_of_one_moment_count_once() -> None:
    clock = ManualClock()
    signals = StopSignals(clock)
    signals.receive(signal.SIGINT)
    signals.receive(signal.SIGTERM)
    assert signals.first.is_set()
    assert not signals.second.is_set()
    clock.advance(1)
    signals.receive(signal.SIGTERM)
    assert signals.second.is_set()


async def test_a_process_without_the_api_serves_only_probes_and_only_on_its_port(settings: Settings) -> None:
    async with running(changed(settings, roles=("upkeep",), metrics_port=0)) as (_, client):
        assert (await client.get("/livez")).status_code == 200
        assert (await client.get("/readyz")).status_code == 200
        assert "coatcheck_rescued_total" in (await client.get("/metrics")).text
        assert (await client.get("/orders")).status_code == 404
    async with running(changed(settings, roles=("upkeep",))) as (served, _client):
        assert served.urls == [None]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"store": "sqlite:////nowhere/jobs.db"}, "the folder /nowhere does not exist"),
        ({"events": "file:/nowhere/events.jsonl"}, "/nowhere/events.jsonl cannot be written"),
        ({"tls_cert": Path(__file__)}, "do not make a certificate"),
    ],
)
async def test_what_cannot_be_used_keeps_it_from_starting(settings: Settings, changes: Any, words: str) -> None:
    runtime = Runtime(app, changed(settings, **changes), APP_REF)
    with pytest.raises(StartRefused, match=words) as caught:
        await serve(runtime, StopSignals(SystemClock()), lambda url: None)
    assert "\n" not in str(caught.value)


async def test_a_runner_that_cannot_import_the_app_keeps_it_from_starting(settings: Settings) -> None:
    with pytest.raises(StartRefused, match="not_there"):
        await Runtime(app, settings, "not_there:app").start()


def test_the_app_is_found_where_it_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    user = types.ModuleType("a_user")
    user.shop = app  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_user", user)
    assert find_app_ref(app) == APP_REF


def test_an_app_that_runners_cannot_import_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = App("hidden")
    with pytest.raises(StartRefused, match="pass app_ref"):
        find_app_ref(hidden)
    script = types.ModuleType("__main__")
    script.hidden = hidden  # type: ignore[attr-defined]
    script.__spec__ = None
    monkeypatch.setitem(sys.modules, "__main__", script)
    with pytest.raises(StartRefused, match="coatcheck serve MODULE:APP"):
        find_app_ref(hidden)


def test_an_app_started_with_dash_m_is_found_under_its_real_name(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = App("hidden")
    module = types.ModuleType("__main__")
    module.hidden = hidden  # type: ignore[attr-defined]
    module.__spec__ = sys.modules["tiny_shop"].__spec__
    monkeypatch.setitem(sys.modules, "__main__", module)
    assert find_app_ref(hidden) == "tiny_shop:hidden"


async def test_submit_is_the_same_acceptance(settings: Settings) -> None:
    service = Service(app, changed(settings, roles=("api",)))
    async with service.lifespan():
        first = await service.submit("orders", Order(title="Emma"), idempotency_key="k")
        again = await service.submit("orders", {"title": "Emma", "seconds": 0.0}, idempotency_key="k")
        assert first.id == again.id
        with pytest.raises(Refused) as conflict:
            await service.submit("orders", {"title": "Persuasion"}, idempotency_key="k")
        assert conflict.value.code == "idempotency-key-reused"
        with pytest.raises(Refused) as invalid:
            await service.submit("orders", {"name": "Emma"})
        assert invalid.value.code == "invalid-request"
        assert b"coatcheck_commit_seconds" in service.render_metrics()[0]


async def test_submit_obeys_the_same_limits(settings: Settings) -> None:
    service = Service(app, changed(settings, roles=("api",), tenant_submit_rate=0.001))
    async with service.lifespan():
        first = await service.submit("orders", {"title": "Emma"}, idempotency_key="k", tenant="acme")
        with pytest.raises(Refused) as refused:
            await service.submit("orders", {"title": "Emma"}, tenant="acme")
        assert refused.value.code == "rate-limited"
        assert int(dict(refused.value.headers)["Retry-After"]) > 900
        other = await service.submit("orders", {"title": "Emma"}, idempotency_key="k", tenant="other")
        assert first.id != other.id


async def test_without_the_client_of_limits_store_it_does_not_start(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = SecretStr("redis://:open-sesame@127.0.0.1:1/0")
    monkeypatch.delitem(sys.modules, "coatcheck.admission.valkey", raising=False)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(StartRefused, match=r"coatcheck\[valkey\]"):
        Service(app, changed(settings, roles=("api",), limits_store=url))


async def test_a_limits_store_that_is_away_keeps_nothing_from_starting(settings: Settings) -> None:
    url = SecretStr("redis://:open-sesame@127.0.0.1:1/0")
    service = Service(app, changed(settings, roles=("api",), limits_store=url, tenant_submit_rate=1))
    async with service.lifespan():
        await service.submit("orders", {"title": "Emma"}, tenant="acme")
        assert b"coatcheck_shared_limits_away 1.0" in service.render_metrics()[0]


async def test_mounted_without_lifespan_it_starts_at_the_first_request(settings: Settings) -> None:
    service = Service(app, changed(settings, roles=("api",)))
    outer = Starlette(routes=[Mount("/shop", service.asgi())])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(outer), base_url="http://x") as client:
        answer = await client.post("/shop/orders", json={"title": "Emma"})
        assert answer.status_code == 202
        assert answer.headers["Location"].startswith("/shop/orders/job_")
        assert (await client.get(answer.headers["Location"])).json()["status"] == "queued"
    await service.stop()


async def test_its_own_lifespan_starts_and_stops_it(settings: Settings) -> None:
    service = Service(app, changed(settings, roles=("api",)))
    received: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    sent: asyncio.Queue[Any] = asyncio.Queue()
    living = asyncio.create_task(_call(service, received, sent))
    received.put_nowait({"type": "lifespan.startup"})
    assert (await sent.get())["type"] == "lifespan.startup.complete"
    received.put_nowait({"type": "lifespan.shutdown"})
    assert (await sent.get())["type"] == "lifespan.shutdown.complete"
    await living
    with pytest.raises(Refused, match="shutting down"):
        await service.submit("orders", {"title": "Emma"})


async def test_a_lifespan_that_cannot_start_says_why(settings: Settings) -> None:
    service = Service(app, changed(settings, roles=("api",), store="sqlite:////nowhere/jobs.db"))
    received: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    sent: asyncio.Queue[Any] = asyncio.Queue()
    received.put_nowait({"type": "lifespan.startup"})
    await _call(service, received, sent)
    assert "/nowhere" in sent.get_nowait()["message"]


async def _call(service: Service, received: asyncio.Queue[dict[str, str]], sent: asyncio.Queue[Any]) -> None:
    await service.asgi()({"type": "lifespan"}, received.get, sent.put)
