"""Killed while it ends a revoked tenant's jobs: what is in no commit has not happened, and the next one goes on."""

import asyncio
import signal
from pathlib import Path

import pytest

from coatcheck.core.tenancy import Revocation
from coatcheck.operating import open_store
from coatcheck.settings import Settings
from coatcheck.store.controls import AddTenant, AuditEntry, RevokeTenant, Tenant
from coatcheck.store.revoking import REASON
from coatcheck.testing.waiting import wait_until
from faults.places import ENGINES, MakePlace
from faults.scene import Scene, opened_scene

HALF = "revocation-half"
JOBS = 5
TENANT = "default"

on_each_engine = pytest.mark.parametrize("make_place", ENGINES.values(), ids=ENGINES)


async def revoke(url: str, policy: Revocation) -> None:
    """As an operator's process would."""
    async with open_store(Settings(store=url)) as runtime:
        now = runtime.clock.now()
        for change in (AddTenant(Tenant(TENANT, now)), RevokeTenant(TENANT, policy, now)):
            await runtime.store.change_controls(change, AuditEntry(now, "op", "test", type(change).__name__, TENANT))


async def is_done(url: str) -> bool:
    async with open_store(Settings(store=url)) as runtime:
        tenant = await runtime.store.find_tenant(TENANT)
        return tenant is not None and tenant.revocation_done_at is not None


def jobs_of(scene: Scene) -> list[tuple[str, str | None]]:
    """Where each job stands, and why it was cancelled, as clients read it."""
    found = []
    for order in scene.orders:
        assert order.job is not None
        reply = scene.client.read(order.job)
        assert reply is not None
        found.append((reply.json["status"], reply.json["cancel_reason"]))
    return found


@on_each_engine
def test_a_revoker_killed_half_way_has_ended_nothing(make_place: MakePlace, tmp_path: Path) -> None:
    with opened_scene(tmp_path, make_place(tmp_path)) as scene:
        scene.await_started(scene.launch("api"))
        for _ in range(JOBS):
            scene.order("work", "return")
        asyncio.run(revoke(scene.place.url, Revocation.CANCEL))
        victim = scene.launch("upkeep", f"{HALF}:1")
        assert victim.ended() == -signal.SIGKILL, victim.log[-4000:]
        assert jobs_of(scene) == [("queued", None)] * JOBS
        scene.launch("upkeep")
        scene.launch("upkeep")
        wait_until(lambda: jobs_of(scene) == [("cancelled", REASON)] * JOBS, "every job to be cancelled")
        wait_until(lambda: asyncio.run(is_done(scene.place.url)), "the revocation to be done")
