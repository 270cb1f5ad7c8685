"""Answers that take long end when their client's credential does, and go on when something else was changed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from guarded_site import GuardedSite, bearer, open_guarded_site
from http_site import Connection
from test_handing_in import assert_problem

from coatcheck.core import limits
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.outcome import Failed
from coatcheck.core.tenancy import Revocation
from coatcheck.operators import dead_letters
from coatcheck.testing.waiting import wait_until_async


@pytest.fixture
async def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GuardedSite]:
    monkeypatch.setattr(limits, "WAIT_POLL_INTERVAL_S", 60)
    async with open_guarded_site(tmp_path) as opened:
        yield opened


async def open_stream(guarded: GuardedSite, url: str, token: str) -> Connection:
    stream = Connection(guarded.site, "GET", url, bearer(token) | {"Accept": "text/event-stream"})
    assert (await stream.next())["status"] == 200
    assert (await stream.next_text()).startswith("retry")
    assert "event: status" in await stream.next_text()
    return stream


async def until_waiting(guarded: GuardedSite, count: int = 1) -> None:
    watch = guarded.site.services.watch
    await wait_until_async(lambda: watch.waits == count, "the wait to begin")


async def changed(guarded: GuardedSite) -> None:
    """Let this process learn of a change."""
    guarded.forget()
    await guarded.site.services.directory.refresh()


@pytest.mark.parametrize("is_view", [False, True])
async def test_a_stream_ends_when_its_key_is_revoked(guarded: GuardedSite, is_view: bool) -> None:
    url = await guarded.accepted()
    made = await guarded.client.post(f"{url}/view-token", headers=bearer(guarded.key))
    stream = await open_stream(guarded, url, made.json()["token"] if is_view else guarded.key)
    await until_waiting(guarded)
    await guarded.revoke_key(guarded.key)
    await changed(guarded)
    end = await stream.next()
    assert (end["body"], end.get("more_body", False)) == (b"", False)
    await stream.end()


async def test_a_stream_ends_though_its_key_is_revoked_before_its_wait_begins(
    guarded: GuardedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = await guarded.accepted()
    store = guarded.site.store
    find_job = store.find_job

    async def found_late(*args: Any, **named: Any) -> Any:
        """Between the look at the credential and that at the job, everybody learns that the key is revoked."""
        monkeypatch.setattr(store, "find_job", find_job)
        found = await find_job(*args, **named)
        await guarded.revoke_key(guarded.key)
        await changed(guarded)
        return found

    monkeypatch.setattr(store, "find_job", found_late)
    stream = await open_stream(guarded, url, guarded.key)
    end = await stream.next()
    assert (end["body"], end.get("more_body", False)) == (b"", False)
    await stream.end()


async def test_a_stream_goes_on_when_another_key_is_revoked(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    stream = await open_stream(guarded, url, guarded.key)
    await until_waiting(guarded)
    await guarded.revoke_key(guarded.other_key)
    await changed(guarded)
    await until_waiting(guarded)
    await guarded.site.claim()
    assert "event: status" in await stream.next_text()
    stream.leave()
    await stream.end()


async def wait_for(guarded: GuardedSite, url: str) -> "asyncio.Future[httpx.Response]":
    waiting = asyncio.ensure_future(guarded.get(url, Prefer="wait=20"))
    await until_waiting(guarded)
    return waiting


async def test_a_wait_ends_when_its_tenant_is_erased(guarded: GuardedSite) -> None:
    waiting = await wait_for(guarded, await guarded.accepted())
    await guarded.revoke_tenant("ours", Revocation.ERASE)
    await changed(guarded)
    assert_problem(await waiting, 401, "unauthenticated")


async def test_a_wait_goes_on_when_another_tenant_is_erased(guarded: GuardedSite) -> None:
    waiting = await wait_for(guarded, await guarded.accepted())
    await guarded.revoke_tenant("theirs", Revocation.ERASE)
    await changed(guarded)
    await until_waiting(guarded)
    await guarded.site.finish(await guarded.site.claim())
    assert (await waiting).json()["status"] == "succeeded"


async def test_work_that_was_accepted_is_answered_as_such_though_its_key_is_revoked(guarded: GuardedSite) -> None:
    waiting = asyncio.ensure_future(guarded.submit(Prefer="wait=20"))
    await until_waiting(guarded)
    await guarded.revoke_key(guarded.key)
    await changed(guarded)
    answered = await waiting
    assert (answered.status_code, answered.json()["status"]) == (202, "queued")


@pytest.mark.parametrize("is_revoked", [False, True])
async def test_many_dead_letters_are_redriven_only_while_the_key_is_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_revoked: bool
) -> None:
    monkeypatch.setattr(dead_letters, "AT_ONCE_MAX", 1)
    async with open_guarded_site(tmp_path, {"operator_key": "the-operators-key-of-dead-letters-only"}) as guarded:
        site, key = guarded.site, await guarded.add_key(scopes=("admin",))
        for _ in range(3):
            await guarded.accepted()
            broken = Failed(ErrorInfo(ErrorCategory.HANDLER_ERROR, "Broken"), is_retryable=False)
            await site.finish(await site.claim(), broken)
        site.clock.advance(1)
        redrive_job = site.store.redrive_job

        async def redriven_and_changed(*args: Any) -> Any:
            monkeypatch.setattr(site.store, "redrive_job", redrive_job)
            redriven = await redrive_job(*args)
            await guarded.revoke_key(key if is_revoked else guarded.other_key)
            await changed(guarded)
            return redriven

        monkeypatch.setattr(site.store, "redrive_job", redriven_and_changed)
        answer = await guarded.client.post("/admin/redrives", json={"all": True, "rate": 1_000}, headers=bearer(key))
        measured = await site.store.measure_queues(site.clock.now())
        queued = sum(queue.ready for queue in measured)
        assert (answer.status_code, queued) == ((401, 1) if is_revoked else (200, 3))
