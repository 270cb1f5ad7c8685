"""What tenants cost, over the operators' API, and budgets that operators set."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from admin_desk import Desk, open_desk


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path) as desk:
        yield desk


async def _post(desk: Desk, tokens: float) -> int:
    return (await desk.site.client.post("/v1/priced", json={"tokens": tokens})).status_code


async def test_spending_is_listed_window_by_window(desk: Desk) -> None:
    for _ in range(3):
        assert await _post(desk, 2.5) == 202
        desk.site.clock.advance(24 * 3600)
    whole = (await desk.ask("GET", "/tenants/default/spending"))["spending"]
    assert [(row["kind"], row["operation"], row["charged"], row["spent"]) for row in whole] == [
        ("tokens", "priced", 2.5, 0)
    ] * 3
    assert whole[0]["window_began_at"] == whole[1]["window_ends_at"]
    first = await desk.ask("GET", "/tenants/default/spending?limit=2")
    rest = await desk.ask("GET", f"/tenants/default/spending?limit=2&cursor={first['next_cursor']}")
    assert [*first["spending"], *rest["spending"]] == whole
    assert rest["next_cursor"] is None


async def test_who_costs_nothing_has_an_empty_list(desk: Desk) -> None:
    assert await desk.ask("GET", "/tenants/nobody/spending") == {"spending": [], "next_cursor": None}


@pytest.mark.parametrize("cursor", ["Zm9v", "x", "MS8xL0EvYg"])
async def test_a_cursor_of_another_list_is_refused(desk: Desk, cursor: str) -> None:
    await desk.refused("GET", f"/tenants/default/spending?cursor={cursor}", 400, "invalid-cursor")


async def test_a_budget_is_set_and_cleared_as_a_limit(desk: Desk) -> None:
    path = "/limits/budget:tokens?tenant=default"
    assert (await desk.ask("GET", path))["meaning"] == "unlimited"
    set_to = await desk.ask("PUT", path, 200, {"value": 10})
    assert (set_to["value"], set_to["origin"], set_to["meaning"]) == (10, "override", "at most 10")
    assert set_to in (await desk.ask("GET", "/limits?tenant=default"))["limits"]
    assert (await desk.ask("DELETE", path))["origin"] == "default"


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("/limits/budget:Tokens?tenant=*", "/name"),
        ("/limits/budget:?tenant=*", "/name"),
        ("/limits/budget:a", "/tenant"),
    ],
)
async def test_a_budget_that_cannot_be_is_refused(desk: Desk, path: str, pointer: str) -> None:
    assert await desk.refused("PUT", path, 422, "invalid-request", {"value": 1}) == [pointer]
