"""Tenants, limits and modes: each change is one commit with its audit entry, and every process hears of it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from coatcheck.core import limits
from coatcheck.core.jsontext import Json
from coatcheck.core.tenancy import Controls, LimitOverride, OperationMode, Revocation, TenantControl
from coatcheck.store.controls import (
    AddKey,
    AddTenant,
    ApiKey,
    AuditEntry,
    ClearLimit,
    ControlChange,
    RestoreTenant,
    RevokeKey,
    RevokeTenant,
    RotateKey,
    SetLimit,
    SetMode,
    SetTenant,
    Tenant,
)
from coatcheck.store.records import Prunable, WakeUp, WakeUpKind
from coatcheck.testing.conformance.world import OPERATION, OTHER_OPERATION, TENANT, Suite, World
from coatcheck.testing.waiting import wait_until_async

OTHER_TENANT = "zenith"
HOUR_MS = 3_600_000


def entry_of(world: World, action: str = "a-change", tenant: str | None = None, **details: Any) -> AuditEntry:
    """An entry made now."""
    return AuditEntry(world.now, "cli:ada", "a-host", action, f"tenant:{tenant}", tenant, details)


async def change(world: World, what: ControlChange) -> bool:
    """Make a change under an entry of its own name."""
    return await world.store.change_controls(what, entry_of(world, type(what).__name__))


async def must_change(world: World, *changes: ControlChange) -> None:
    for what in changes:
        assert await change(world, what), what


def key(world: World, key_id: str = "key-1", tenant: str = TENANT, **fields: Any) -> ApiKey:
    """A key made now, with these fields."""
    return structs.replace(ApiKey(key_id, tenant, "d" * 64, ("read", "submit"), "a label", world.now), **fields)


async def with_tenants(world: World, *names: str) -> None:
    """Make these tenants."""
    for name in names:
        await must_change(world, AddTenant(Tenant(name, world.now)))


async def actions_of(world: World) -> Sequence[str]:
    """What the audit log says was done, newest first."""
    return [audited.entry.action for audited in await world.store.read_audit(100)]


class TestControls(Suite):
    """What is written with a change, and what is not where there is none."""

    async def test_a_new_store_has_none(self, world: World) -> None:
        assert await world.store.read_controls_version() == 0
        assert await world.store.read_controls() == Controls()
        assert list(await world.store.read_audit(10)) == []

    async def test_every_change_is_audited_and_raises_the_version(self, world: World) -> None:
        changes: list[ControlChange] = [
            AddTenant(Tenant(TENANT, world.now)),
            SetTenant(TENANT, weight=2.0),
            AddKey(key(world)),
            RotateKey(key(world, "key-2"), "key-1", world.now + 1),
            RevokeKey("key-1", world.now),
            SetLimit(LimitOverride("queued", TENANT, "", 5)),
            ClearLimit("queued", TENANT, ""),
            SetMode(OPERATION, OperationMode.PAUSED),
            SetMode(OPERATION, OperationMode.OPEN),
            RevokeTenant(TENANT, Revocation.FINISH, world.now),
            RestoreTenant(TENANT, world.now),
        ]
        for number, what in enumerate(changes, start=1):
            assert await change(world, what), what
            assert await world.store.read_controls_version() == number
            assert (await world.store.read_controls()).version == number
        assert list(reversed(await actions_of(world))) == [type(what).__name__ for what in changes]

    async def test_what_finds_nothing_to_change_writes_nothing(self, world: World) -> None:
        await with_tenants(world, TENANT, OTHER_TENANT)
        limit = LimitOverride("queued", TENANT, "", 5)
        unlimited = LimitOverride("queued", OTHER_TENANT, "", None)
        paused = SetMode(OPERATION, OperationMode.PAUSED)
        await must_change(world, AddKey(key(world)), SetLimit(limit), SetLimit(unlimited), paused)
        await must_change(world, AddKey(key(world, "key-3")), RevokeKey("key-3", world.now))
        await must_change(world, RevokeTenant(OTHER_TENANT, Revocation.CANCEL, world.now))
        before = (
            await world.store.read_controls(),
            await world.store.read_audit(100),
            await world.factory.count_rows(),
        )
        nothing: list[ControlChange] = [
            AddTenant(Tenant(TENANT, world.now, weight=9.0)),
            SetTenant("nobody", weight=2.0),
            SetTenant(TENANT),
            SetTenant(TENANT, weight=1.0, is_paused=False),
            AddKey(key(world)),
            AddKey(key(world, "key-2", "nobody")),
            AddKey(key(world, "key-2", OTHER_TENANT)),
            RotateKey(key(world, "key-2"), "no-key", world.now),
            RotateKey(key(world, "key-2"), "key-3", world.now),
            RotateKey(key(world, "key-2", OTHER_TENANT), "key-1", world.now),
            RotateKey(key(world, "key-1"), "key-1", world.now),
            RevokeKey("no-key", world.now),
            RevokeKey("key-3", world.now),
            SetLimit(limit),
            SetLimit(unlimited),
            ClearLimit("running", TENANT, ""),
            ClearLimit("queued", TENANT, OPERATION),
            paused,
            SetMode(OTHER_OPERATION, OperationMode.OPEN),
            RevokeTenant("nobody", Revocation.ERASE, world.now),
            RevokeTenant(OTHER_TENANT, Revocation.QUARANTINE, world.now),
            RevokeTenant(OTHER_TENANT, Revocation.CANCEL, world.now + 1),
            RestoreTenant(OTHER_TENANT, world.now),
            RestoreTenant(TENANT, world.now),
            RestoreTenant("nobody", world.now),
        ]
        for what in nothing:
            assert not await change(world, what), what
        assert await world.store.read_controls() == before[0]
        assert await world.store.read_audit(100) == before[1]
        assert await world.factory.count_rows() == before[2]

    async def test_the_controls_hold_what_was_decided_and_nothing_else(self, world: World) -> None:
        await with_tenants(world, TENANT, OTHER_TENANT, "plain", "gone")
        overrides = {
            LimitOverride("queued", TENANT, OPERATION, 0.0),
            LimitOverride("queued", "*", "", None),
            LimitOverride("submit_rate", "", "", 2.5),
        }
        await must_change(
            world,
            SetTenant(TENANT, weight=2.5),
            SetTenant(OTHER_TENANT, is_paused=True),
            RevokeTenant("gone", Revocation.QUARANTINE, world.now),
            SetMode(OPERATION, OperationMode.PAUSED),
            SetMode(OPERATION, OperationMode.DRAINING),
            SetMode(OTHER_OPERATION, OperationMode.PAUSED),
            SetMode(OTHER_OPERATION, OperationMode.OPEN),
            *(SetLimit(override) for override in overrides),
        )
        for store in (world.store, await world.another_store()):
            controls = await store.read_controls()
            assert controls.tenants == {
                TENANT: TenantControl(TENANT, weight=2.5),
                OTHER_TENANT: TenantControl(OTHER_TENANT, is_paused=True),
                "gone": TenantControl("gone", revocation=Revocation.QUARANTINE),
            }
            assert controls.modes == {OPERATION: OperationMode.DRAINING}
            assert len(controls.overrides) == 3
            assert set(controls.overrides) == overrides

    async def test_every_process_is_told(self, world: World) -> None:
        heard: list[WakeUp] = []
        for store in (world.store, await world.another_store()):
            store.listen(heard.append)
        await with_tenants(world, TENANT)
        told = WakeUp(WakeUpKind.CONTROLS)
        await wait_until_async(lambda: heard.count(told) == 2, "a wake-up of both stores")

    async def test_changes_at_once_are_made_once_each(self, world: World) -> None:
        stores = [world.store, await world.another_store()]
        added = AddTenant(Tenant(TENANT, world.now))
        made = await asyncio.gather(*(stores[n % 2].change_controls(added, entry_of(world)) for n in range(8)))
        assert made.count(True) == 1
        await asyncio.gather(
            *(
                stores[n % 2].change_controls(SetLimit(LimitOverride("queued", f"t{n}", "", n)), entry_of(world))
                for n in range(8)
            )
        )
        assert await world.store.read_controls_version() == 9
        assert len((await world.store.read_controls()).overrides) == 8

    async def test_limits_are_set_up_to_a_number(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "LIMITS_SET_MAX", 2)
        await must_change(world, *(SetLimit(LimitOverride("queued", tenant, "", 1)) for tenant in ("a", "b")))
        assert not await change(world, SetLimit(LimitOverride("queued", "c", "", 1)))
        await must_change(world, SetLimit(LimitOverride("queued", "a", "", 2)), ClearLimit("queued", "b", ""))
        await must_change(world, SetLimit(LimitOverride("queued", "c", "", 1)))

    async def test_changes_outlive_the_process(self, world: World) -> None:
        await with_tenants(world, TENANT)
        await must_change(world, SetTenant(TENANT, is_paused=True), AddKey(key(world)))
        before = (await world.store.read_controls(), await world.store.list_keys(TENANT), await actions_of(world))
        await world.reopen()
        assert before == (
            await world.store.read_controls(),
            await world.store.list_keys(TENANT),
            await actions_of(world),
        )


class TestTenants(Suite):
    """Accounts."""

    async def test_a_tenant_is_found_as_it_was_made_and_changed(self, world: World) -> None:
        made = Tenant(TENANT, world.now)
        await must_change(world, AddTenant(made))
        assert await world.store.find_tenant(TENANT) == made
        world.clock.advance(1)
        await must_change(world, SetTenant(TENANT, weight=0.5, is_paused=True))
        changed = structs.replace(made, weight=0.5, is_paused=True)
        assert await world.store.find_tenant(TENANT) == changed
        await must_change(world, SetTenant(TENANT, is_paused=False))
        assert await world.store.find_tenant(TENANT) == structs.replace(changed, is_paused=False)

    @pytest.mark.parametrize("name", ["", "nobody", "ACME", "acme ", "%", "ac\0me"])
    async def test_who_is_not_there_is_not_found(self, world: World, name: str) -> None:
        await with_tenants(world, TENANT)
        assert await world.store.find_tenant(name) is None

    @pytest.mark.parametrize("name", ["nobody", "ac\0me"])
    async def test_of_who_is_not_there_nothing_is_changed(self, world: World, name: str) -> None:
        await with_tenants(world, TENANT)
        before = await world.store.read_controls_version()
        for what in (
            SetTenant(name, weight=2.0),
            RevokeTenant(name, Revocation.FINISH, world.now),
            RestoreTenant(name, world.now),
            AddKey(key(world, tenant=name)),
            RevokeKey(name, world.now),
            RotateKey(key(world, "key-2"), name, world.now),
        ):
            assert not await change(world, what), what
        assert await world.store.read_controls_version() == before

    async def test_names_are_listed_byte_by_byte_and_page_by_page(self, world: World) -> None:
        names = ["*", "B", "a", "a b", "a-b", "ab", "Ünïversal", "日本"]
        await with_tenants(world, *reversed(names))
        by_bytes = sorted(names, key=str.encode)
        found: list[str] = []
        while page := await world.store.list_tenants(3, found[-1] if found else None):
            assert len(page) <= 3
            found += [tenant.name for tenant in page]
        assert found == by_bytes

    async def test_a_revocation_takes_a_stricter_policy_only(self, world: World) -> None:
        await with_tenants(world, TENANT)
        for policy in Revocation:
            world.clock.advance(1)
            await must_change(world, RevokeTenant(TENANT, policy, world.now))
            tenant = await world.store.find_tenant(TENANT)
            assert tenant is not None
            assert (tenant.revocation, tenant.revoked_at, tenant.revocation_done_at) == (policy, world.now, None)
            for other in Revocation:
                if other.strictness <= policy.strictness:
                    assert not await change(world, RevokeTenant(TENANT, other, world.now))

    async def test_a_revocation_is_nowhere_weaker_than_the_one_before(self, world: World) -> None:
        """Policies of single operations are a part of it, in both."""
        finish, quarantine, cancel, erase = Revocation
        await with_tenants(world, TENANT)
        await must_change(world, RevokeTenant(TENANT, quarantine, world.now, {OPERATION: finish}))
        for weaker in (RevokeTenant(TENANT, finish, world.now), RevokeTenant(TENANT, finish, world.now, {"a": erase})):
            assert not await change(world, weaker)
        await must_change(world, RevokeTenant(TENANT, quarantine, world.now))
        await must_change(world, RevokeTenant(TENANT, quarantine, world.now, {OPERATION: cancel, "a": quarantine}))
        for as_strict in ({OPERATION: cancel}, {OPERATION: cancel, "b": quarantine}):
            assert not await change(world, RevokeTenant(TENANT, quarantine, world.now, as_strict))
        assert not await change(world, RevokeTenant(TENANT, quarantine, world.now))
        assert not await change(world, RevokeTenant(TENANT, erase, world.now, {OPERATION: quarantine}))
        await must_change(world, RevokeTenant(TENANT, cancel, world.now))
        tenant = await world.store.find_tenant(TENANT)
        assert tenant is not None
        assert (tenant.revocation, tenant.by_operation) == (cancel, {})

    @pytest.mark.parametrize("policy", Revocation)
    async def test_what_can_be_undone_is(self, world: World, policy: Revocation) -> None:
        await with_tenants(world, TENANT)
        before = await world.store.find_tenant(TENANT)
        await must_change(world, RevokeTenant(TENANT, policy, world.now))
        is_undone = policy in (Revocation.FINISH, Revocation.QUARANTINE)
        assert await change(world, RestoreTenant(TENANT, world.now)) == is_undone
        assert before is not None
        as_before = structs.replace(before, restored_at=world.now)
        assert (await world.store.find_tenant(TENANT) == as_before) == is_undone


class TestAudit(Suite):
    """Who did what, when, from where."""

    async def test_an_entry_is_read_as_it_was_written(self, world: World) -> None:
        details: dict[str, Json] = {"weight": 2.5, "name": "Łódź", "before": None, "list": [1, True, {"a": "b"}]}
        written = AuditEntry(world.now, "key:abc", "192.0.2.7", "set", "tenant:acme", TENANT, details)
        await world.store.change_controls(AddTenant(Tenant(TENANT, world.now)), written)
        (audited,) = await world.store.read_audit(10)
        assert audited.entry == written

    async def test_the_newest_come_first_page_by_page(self, world: World) -> None:
        for number in range(7):
            added = AddTenant(Tenant(f"tenant-{number}", world.now))
            tenant = (TENANT, OTHER_TENANT, None)[number % 3]
            await world.store.change_controls(added, entry_of(world, f"act-{number}", tenant))
        for tenant, numbers in ((None, range(7)), (TENANT, (0, 3, 6)), (OTHER_TENANT, (1, 4)), ("nobody", ())):
            found: list[str] = []
            before = None
            while page := await world.store.read_audit(2, before, tenant):
                assert len(page) <= 2
                found += [audited.entry.action for audited in page]
                before = page[-1].seq
            assert found == [f"act-{number}" for number in reversed(numbers)]

    async def test_old_entries_are_forgotten_at_last(self, world: World) -> None:
        for number in range(4):
            await must_change(world, AddTenant(Tenant(f"tenant-{number}", world.now)))
            world.clock.advance(1)
        world.clock.advance(limits.AUDIT_KEPT_S - 2)
        assert [await world.store.prune_expired(Prunable.AUDIT, world.now, 2) for _ in range(3)] == [2, 1, 0]
        (left,) = await world.store.read_audit(10)
        await must_change(world, SetMode(OPERATION, OperationMode.PAUSED))
        assert (await world.store.read_audit(1))[0].seq > left.seq
