"""Who may read the metrics."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from guarded_site import bearer, open_guarded_site
from http_site import open_site
from test_handing_in import assert_problem

from coatcheck.http.draining import DrainState
from coatcheck.http.probes import build_probes
from coatcheck.settings import Settings

METRICS_KEY = "the-key-of-those-who-read-the-metrics"
OPERATOR_KEY = "the-key-of-those-who-look-after-it-all"


@pytest.mark.parametrize(
    ("settings", "is_open"),
    [
        ({}, True),
        ({"auth": "none"}, True),
        ({"auth": "none", "metrics_key": METRICS_KEY}, False),
        ({"auth": "keys"}, False),
        ({"auth": "keys", "metrics_key": METRICS_KEY}, False),
        ({"auth": "keys", "metrics_open": True}, True),
    ],
)
async def test_they_are_open_where_clients_need_not_authenticate_or_a_setting_says_so(
    tmp_path: Path, settings: dict[str, Any], is_open: bool
) -> None:
    async with open_site(tmp_path, settings) as site:
        response = await site.client.get("/metrics")
        if is_open:
            assert response.status_code == 200
        else:
            assert_problem(response, 401, "unauthenticated")


async def test_they_open_to_their_key_the_operators_and_keys_with_the_scope_admin(tmp_path: Path) -> None:
    settings = {"metrics_key": METRICS_KEY, "operator_key": OPERATOR_KEY}
    async with open_guarded_site(tmp_path, settings) as guarded:
        admin = await guarded.add_key(scopes=("admin",))
        guarded.forget()
        for key in (METRICS_KEY, OPERATOR_KEY, admin):
            assert (await guarded.get("/metrics", key)).status_code == 200
        assert_problem(await guarded.get("/metrics", guarded.key), 403, "forbidden")
        for key in (METRICS_KEY + "x", "x", guarded.key + "x"):
            assert_problem(await guarded.get("/metrics", key), 401, "unauthenticated")
        twice = [("Authorization", f"Bearer {METRICS_KEY}")] * 2
        assert (await guarded.client.get("/metrics", headers=twice)).status_code == 401
        for key in (METRICS_KEY, OPERATOR_KEY):
            assert_problem(await guarded.get("/v1/jobs", key), 401, "unauthenticated")


@pytest.mark.parametrize(
    ("settings", "key", "status"),
    [
        ({}, None, 200),
        ({"auth": "keys"}, None, 401),
        ({"auth": "keys", "metrics_key": METRICS_KEY}, METRICS_KEY, 200),
        ({"auth": "keys", "operator_key": OPERATOR_KEY}, OPERATOR_KEY, 200),
        ({"metrics_key": METRICS_KEY}, METRICS_KEY + "x", 401),
        ({"metrics_key": METRICS_KEY}, None, 401),
    ],
)
async def test_a_process_without_the_api_asks_for_the_same_keys(
    tmp_path: Path, settings: dict[str, Any], key: str | None, status: int
) -> None:
    async with open_site(tmp_path) as site:
        probes = build_probes(site.store, site.metrics, DrainState(), Settings(**settings))
        transport = httpx.ASGITransport(app=probes)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            response = await client.get("/metrics", headers=bearer(key) if key else {})
            assert response.status_code == status
            assert ("www-authenticate" in response.headers) is (status == 401)
            assert (await client.get("/livez")).status_code == 200
