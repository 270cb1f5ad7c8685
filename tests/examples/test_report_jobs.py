"""`make demo-reports`, as a person runs it: PostgreSQL, a site, and orders that commit with their exports."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from harness.postgres_server import shared_server
from report_jobs import demo
from report_jobs.forms import csv_form, json_form
from report_jobs.local_database import DatabaseFailed
from report_jobs.local_site import local_site
from report_jobs.orders import Order, OrderedLine

ROOT = Path(__file__).resolve().parents[2]
PYTHON_PATH = os.pathsep.join((str(ROOT / "examples"), str(ROOT / "src")))


def test_the_demo_tells_the_whole_story(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "report_jobs.demo"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": PYTHON_PATH},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "\x1b" not in done.stdout
    story = (
        "POST /orders",
        "201",
        "GET /jobs/exports/job_",
        "succeeded",
        "order,sku,name,packets,price_cents,total_cents",
        "409",
        "There are not 900 packets of tomato-black in stock.",
        "1 job: job_",
        '"total_cents": 18950',
    )
    places = [done.stdout.find(step) for step in story]
    assert -1 not in places, done.stdout
    assert places == sorted(places), done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The site on a database of the tests' own."""
    folder = tmp_path_factory.mktemp("site")
    database = asyncio.run(shared_server().new_database())
    with pytest.MonkeyPatch.context() as patch, (folder / "log").open("wb") as log:
        patch.setenv("PYTHONPATH", PYTHON_PATH)
        with local_site(folder, database, log) as url, httpx.Client(base_url=url, timeout=30) as client:
            client.headers["X-Database"] = database
            yield client


def test_what_cannot_be_ordered_leaves_no_order_no_job_and_all_the_stock(site: httpx.Client) -> None:
    line = {"sku": "pea-sweet", "packets": 3}
    before = asyncio.run(_left(site, "pea-sweet")), site.get("/jobs/exports").json()["jobs"]
    for lines, reason in (
        ([line, {"sku": "unobtainable", "packets": 1}], "There is no such article."),
        ([line, line], "An article stands on two lines."),
        ([line, {"sku": "tomato-black", "packets": 90_000}], "There are not 90000 packets of tomato-black in stock."),
    ):
        answer = site.post("/orders", json={"buyer": "A", "lines": lines})
        assert (answer.status_code, answer.json()["detail"]) == (409, reason)
    assert (asyncio.run(_left(site, "pea-sweet")), site.get("/jobs/exports").json()["jobs"]) == before


def test_an_order_is_there_with_its_export(site: httpx.Client) -> None:
    placed = site.post("/orders", json={"buyer": "B", "lines": [{"sku": "pea-sweet", "packets": 2}]}).json()
    assert site.get(f"/orders/{placed['number']}").json() == placed
    job = site.get(placed["export_url"], headers={"Prefer": "wait=20"}).json()
    assert (job["status"], job["operation"]) == ("succeeded", "exports")
    export = site.get(job["result_url"])
    assert export.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert export.text.splitlines()[1] == f'{placed["number"]},pea-sweet,"Sweet pea, Matucana",2,280,560'
    assert site.get("/orders/999").status_code == httpx.codes.NOT_FOUND


def test_an_export_of_an_order_that_is_not_there_fails_with_a_reason(site: httpx.Client) -> None:
    job = site.post("/jobs/exports", json={"order": 999, "format": "csv"}, headers={"Prefer": "wait=20"}).json()
    assert (job["status"], job["error"]["code"]) == ("failed", "unknown-order")


def test_forms_say_the_same() -> None:
    order = Order(7, "C", None, (OrderedLine("s", "Seed, plain", 3, 150),))
    assert csv_form(order).decode().splitlines()[1] == '7,s,"Seed, plain",3,150,450'
    assert b'"total_cents": 450' in json_form(order)


def test_a_database_that_does_not_start_is_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(folder: Path) -> None:
        raise DatabaseFailed("PostgreSQL ended with exit code 1 before it was ready.")

    monkeypatch.setattr(demo, "local_database", fail)
    assert demo.main() == 1
    assert "The demo failed. PostgreSQL ended with exit code 1 before it was ready." in capsys.readouterr().out


async def _left(site: httpx.Client, sku: str) -> tuple[int, int]:
    """How many orders there are, and how many packets of an article."""
    connection = await asyncpg.connect(site.headers["X-Database"])
    try:
        orders = await connection.fetchval("SELECT count(*) FROM purchase")
        return orders, await connection.fetchval("SELECT packets FROM article WHERE sku = $1", sku)
    finally:
        await connection.close()
