"""API keys: a bounded number for each tenant, two of which may overlap while one takes the place of the other."""

import asyncio

import pytest

from coatcheck.core import limits
from coatcheck.store.controls import AddKey, RevokeKey, RotateKey
from coatcheck.store.records import Prunable
from coatcheck.testing.conformance.controls import (
    OTHER_TENANT,
    actions_of,
    change,
    entry_of,
    key,
    must_change,
    with_tenants,
)
from coatcheck.testing.conformance.world import TENANT, Suite, World

HOUR_MS = 3_600_000


class TestApiKeys(Suite):
    """Keys, of which only a digest is kept."""

    async def test_a_key_is_found_as_it_was_made(self, world: World) -> None:
        await with_tenants(world, TENANT, OTHER_TENANT)
        first = key(world, expires_at=world.now + HOUR_MS)
        world.clock.advance(1)
        second = key(world, "key-2", scopes=(), label="")
        await must_change(world, AddKey(second), AddKey(first), AddKey(key(world, "key-3", OTHER_TENANT)))
        assert await world.store.find_key("key-1") == first
        assert await world.store.find_key("key-2") == second
        assert list(await world.store.list_keys(TENANT)) == [first, second]
        assert list(await world.store.list_keys("nobody")) == []

    @pytest.mark.parametrize("key_id", ["", "no-key", "KEY-1", "key-1 ", "%", "key\0"])
    async def test_what_is_not_there_is_not_found(self, world: World, key_id: str) -> None:
        await with_tenants(world, TENANT)
        await must_change(world, AddKey(key(world)))
        assert await world.store.find_key(key_id) is None

    async def test_a_revoked_key_stays_to_be_seen(self, world: World) -> None:
        await with_tenants(world, TENANT)
        await must_change(world, AddKey(key(world)))
        world.clock.advance(1)
        await must_change(world, RevokeKey("key-1", world.now))
        found = await world.store.find_key("key-1")
        assert found is not None
        assert (found.revoked_at, found.is_live(world.now)) == (world.now, False)

    async def test_a_tenant_has_so_many_live_keys_at_most(self, world: World) -> None:
        most = limits.KEYS_PER_TENANT_MAX
        await with_tenants(world, TENANT)
        await must_change(world, *(AddKey(key(world, f"key-{n}")) for n in range(most - 1)))
        await must_change(world, AddKey(key(world, "short", expires_at=world.now + 1_000)))
        assert not await change(world, AddKey(key(world, "more")))
        world.clock.advance(1)
        await must_change(world, AddKey(key(world, "more")))
        assert not await change(world, AddKey(key(world, "still-more")))
        await must_change(world, RevokeKey("key-0", world.now), AddKey(key(world, "still-more")))

    async def test_that_many_though_they_come_at_once(self, world: World) -> None:
        most = limits.KEYS_PER_TENANT_MAX
        await with_tenants(world, TENANT)
        stores = [world.store, await world.another_store()]
        made = await asyncio.gather(
            *(stores[n % 2].change_controls(AddKey(key(world, f"k{n}")), entry_of(world)) for n in range(most + 6))
        )
        assert made.count(True) == most

    async def test_a_rotation_lets_the_old_key_live_on_for_a_while(self, world: World) -> None:
        await with_tenants(world, TENANT)
        most = limits.KEYS_PER_TENANT_MAX
        await must_change(world, *(AddKey(key(world, f"key-{n}")) for n in range(most)))
        world.clock.advance(1)
        until = world.now + HOUR_MS
        await must_change(world, RotateKey(key(world, "new"), "key-0", until))
        old, new = await world.store.find_key("key-0"), await world.store.find_key("new")
        assert old is not None
        assert (old.expires_at, new) == (until, key(world, "new"))
        assert not await change(world, RotateKey(key(world, "newer"), "key-1", until))

    async def test_a_rotation_lets_no_key_live_longer(self, world: World) -> None:
        await with_tenants(world, TENANT)
        ends = world.now + 1_000
        await must_change(world, AddKey(key(world, expires_at=ends)))
        await must_change(world, RotateKey(key(world, "new"), "key-1", world.now + HOUR_MS))
        old = await world.store.find_key("key-1")
        assert old is not None
        assert old.expires_at == ends

    async def test_a_use_is_noted_without_a_change_of_the_controls(self, world: World) -> None:
        await with_tenants(world, TENANT)
        await must_change(world, AddKey(key(world)), AddKey(key(world, "key-2")), AddKey(key(world, "key-3")))
        version, actions = await world.store.read_controls_version(), await actions_of(world)
        await world.store.touch_keys({"key-1": world.now + 5, "key-2": world.now + 5, "no-key": world.now})
        await world.store.touch_keys({"key-1": world.now + 9, "key-2": world.now + 1})
        await world.store.touch_keys({})
        used = {found.key_id: found.last_used_at for found in await world.store.list_keys(TENANT)}
        assert used == {"key-1": world.now + 9, "key-2": world.now + 5, "key-3": None}
        assert (await world.store.read_controls_version(), await actions_of(world)) == (version, actions)

    async def test_ended_keys_are_forgotten_at_last(self, world: World) -> None:
        await with_tenants(world, TENANT)
        await must_change(world, AddKey(key(world, "expired", expires_at=world.now + 1_000)))
        for name in ("revoked", "live"):
            await must_change(world, AddKey(key(world, name)))
        await must_change(world, RevokeKey("revoked", world.now + 1_000))
        world.clock.advance(limits.API_KEY_KEPT_S + 0.999)
        assert await world.store.prune_expired(Prunable.API_KEYS, world.now, 10) == 0
        world.clock.advance(0.001)
        assert [await world.store.prune_expired(Prunable.API_KEYS, world.now, 1) for _ in range(3)] == [1, 1, 0]
        assert [found.key_id for found in await world.store.list_keys(TENANT)] == ["live"]
