"""Bodies that come slowly: what operators changed meanwhile holds for them, too."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from guarded_site import GuardedSite, bearer, open_guarded_site
from http_site import Connection

from coatcheck.core import limits
from coatcheck.core.tenancy import OperationMode, Revocation
from coatcheck.http import room
from coatcheck.store.controls import SetMode
from coatcheck.testing.waiting import wait_until_async

BODY = b'{"branch":"leeds"}'
OPERATOR_KEY = "the-operators-key-of-slow-bodies-only"
JSON = {"Content-Type": "application/json"}


@pytest_asyncio.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[GuardedSite]:
    async with open_guarded_site(tmp_path) as opened:
        yield opened


async def begun(guarded: GuardedSite, url: str, key: str, part: bytes = BODY[:5]) -> Connection:
    """A request whose body is half there, and which has been let in."""
    connection = Connection(guarded.site, "POST", url, bearer(key) | JSON)
    connection.send_body(part, has_more=True)
    await wait_until_async(lambda: connection.is_read, "the first half to be read")
    return connection


async def ended(connection: Connection, rest: bytes = BODY[5:]) -> tuple[int, Any]:
    connection.send_body(rest)
    head, body = await connection.next(), await connection.next()
    await connection.end()
    return head["status"], json.loads(body["body"])


async def kept(guarded: GuardedSite) -> int:
    """How many jobs are on file."""
    measured = await guarded.site.store.measure_queues(guarded.site.clock.now())
    return sum(queue.ready + queue.scheduled for queue in measured)


async def test_a_slow_body_of_a_good_key_is_taken(guarded: GuardedSite) -> None:
    connection = await begun(guarded, "/reports", guarded.key)
    await guarded.revoke_key(guarded.other_key)
    guarded.forget()
    status, _ = await ended(connection)
    assert (status, await kept(guarded)) == (202, 1)


async def test_nothing_is_accepted_of_a_key_that_was_revoked_before_its_body_was_there(guarded: GuardedSite) -> None:
    connection = await begun(guarded, "/reports", guarded.key)
    await guarded.revoke_key(guarded.key)
    guarded.forget()
    status, problem = await ended(connection)
    assert (status, problem["code"], await kept(guarded)) == (401, "unauthenticated", 0)


async def test_nothing_is_accepted_of_a_key_that_expired_before_its_body_was_there(guarded: GuardedSite) -> None:
    key = await guarded.add_key(expires_at=guarded.site.clock.now() + 5_000)
    connection = await begun(guarded, "/reports", key)
    guarded.site.clock.advance(6)
    status, problem = await ended(connection)
    assert (status, problem["code"], await kept(guarded)) == (401, "unauthenticated", 0)


async def test_nothing_is_accepted_of_a_tenant_that_was_revoked_meanwhile(guarded: GuardedSite) -> None:
    connection = await begun(guarded, "/reports", guarded.key)
    await guarded.revoke_tenant("ours", Revocation.FINISH)
    guarded.forget()
    status, problem = await ended(connection)
    assert (status, problem["code"], await kept(guarded)) == (403, "tenant-suspended", 0)


async def test_nothing_is_accepted_in_an_operation_that_is_drained_meanwhile(guarded: GuardedSite) -> None:
    connection = await begun(guarded, "/reports", guarded.key)
    await guarded.change(SetMode("reports", OperationMode.DRAINING))
    guarded.forget()
    status, problem = await ended(connection)
    assert (status, problem["code"], await kept(guarded)) == (503, "draining", 0)


async def test_a_job_is_not_cancelled_with_a_key_that_was_revoked_meanwhile(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    connection = await begun(guarded, f"{url}/cancel", guarded.key, b"{")
    await guarded.revoke_key(guarded.key)
    guarded.forget()
    status, problem = await ended(connection, b"}")
    assert (status, problem["code"], await kept(guarded)) == (401, "unauthenticated", 1)


@pytest.mark.parametrize("is_revoked", [False, True])
async def test_no_key_is_made_with_an_operators_key_that_was_revoked_meanwhile(
    tmp_path: Path, is_revoked: bool
) -> None:
    async with open_guarded_site(tmp_path, {"operator_key": OPERATOR_KEY}) as guarded:
        key = await guarded.add_key(scopes=("admin",))
        before = await guarded.site.store.list_keys("ours")
        connection = await begun(guarded, "/admin/tenants/ours/keys", key, b"{")
        await guarded.revoke_key(key if is_revoked else guarded.other_key)
        guarded.forget()
        status, _ = await ended(connection, b"}")
        made = len(await guarded.site.store.list_keys("ours")) - len(before)
        assert (status, made) == ((401, 0) if is_revoked else (201, 1))


async def test_the_operators_own_key_is_asked_for_once(tmp_path: Path) -> None:
    async with open_guarded_site(tmp_path, {"operator_key": OPERATOR_KEY}) as guarded:
        connection = await begun(guarded, "/admin/tenants/ours/keys", OPERATOR_KEY, b"{")
        guarded.forget()
        status, _ = await ended(connection, b"}")
        assert status == 201


async def test_one_tenants_large_bodies_leave_room_for_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "memory_bytes_max", lambda: 4_000_000 * limits.ROOM_PART_OF_MEMORY)
    large = b" " * (limits.BODY_AT_ONCE_BYTES_MAX + 1) + BODY
    async with open_guarded_site(tmp_path) as guarded:
        held = [await begun(guarded, "/v1/brief", guarded.key, large[:-1]) for _ in range(80)]
        status, _ = await ended(await begun(guarded, "/v1/brief", guarded.other_key, large[:-1]), large[-1:])
        assert status == 202
        assert {(await ended(connection, large[-1:]))[0] for connection in held} == {202, 503}
