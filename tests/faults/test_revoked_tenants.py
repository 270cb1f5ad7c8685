"""What clients of a revoked tenant see, with the API in one process and workers and upkeep in another."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from coatcheck.core.tenancy import Revocation
from coatcheck.store.revoking import REASON
from coatcheck.testing.waiting import wait_until
from faults.places import ENGINES, MakePlace
from faults.scene import Order, Scene, opened_scene
from faults.test_kills_at_revocations import TENANT, revoke

on_each_engine = pytest.mark.parametrize("make_place", ENGINES.values(), ids=ENGINES)
SOON_S = 25.0
START_AFTER_S = "12"
LEASE_S = 10.0
"""No process dies here. A job that a busy machine lost would wait in quarantine, as it has to."""
LOOKED_AT = timedelta(seconds=2)
"""Due jobs are looked for more often than that."""


class Life:
    """One tenant's jobs: done, failed, running, and waiting until a moment that comes soon."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.done = scene.order("work", "return")
        self.failed = scene.order("doomed", "fail")
        scene.until(self.done, "succeeded")
        scene.until(self.failed, "failed")
        self.running = scene.order("work", "wait")
        scene.until(self.running, "running")
        self.waiting = scene.order("work", "return", Job_Start_After=START_AFTER_S)

    def read(self, order: Order) -> tuple[int, Mapping[str, Any]]:
        assert order.job is not None
        answer = httpx.get(self._scene.url + order.job["status_url"])
        return answer.status_code, answer.json()

    def status(self, order: Order) -> str:
        code, job = self.read(order)
        return str(job["status"]) if code == 200 else str(code)

    def revoke(self, policy: Revocation) -> None:
        """As an operator's process would, before the waiting job is due."""
        asyncio.run(revoke(self._scene.place.url, policy))

    def refuses_work(self) -> str:
        """The code of the answer to new work, once it is refused."""
        answers = []

        def is_refused() -> bool:
            answers.append(httpx.post(f"{self._scene.url}/v1/work", json={}))
            return answers[-1].status_code in (401, 403)

        wait_until(is_refused, "new work to be refused", SOON_S)
        return str(answers[-1].json()["code"])

    def let_go(self) -> None:
        """What runs may end."""
        self._scene.gate.touch()

    def await_statuses(self, **expected: str) -> None:
        seen: dict[str, str] = {}

        def look() -> bool:
            seen.update({name: self.status(getattr(self, name)) for name in expected})
            return seen == expected

        try:
            wait_until(look, f"{expected}", SOON_S)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; seen was {seen}") from error


@contextmanager
def begun(make_place: MakePlace, folder: Path) -> Iterator[tuple[Scene, Life]]:
    with opened_scene(folder, make_place(folder), LEASE_S) as scene:
        scene.await_started(scene.launch("worker,relay,upkeep"), scene.launch("api"))
        yield scene, Life(scene)


@on_each_engine
def test_finish(make_place: MakePlace, tmp_path: Path) -> None:
    with begun(make_place, tmp_path) as (_, life):
        life.revoke(Revocation.FINISH)
        assert life.refuses_work() == "tenant-suspended"
        life.let_go()
        life.await_statuses(done="succeeded", failed="failed", running="succeeded", waiting="succeeded")


@on_each_engine
def test_quarantine_and_back(make_place: MakePlace, tmp_path: Path) -> None:
    with begun(make_place, tmp_path) as (scene, life):
        life.revoke(Revocation.QUARANTINE)
        assert life.refuses_work() == "tenant-suspended"
        life.let_go()
        ended = scene.run_command("tenants", "revoke", TENANT, "--policy", "quarantine", "--wait")
        assert ended.returncode == 0, ended.stderr
        due_at = datetime.fromisoformat(life.read(life.waiting)[1]["available_at"])
        wait_until(lambda: datetime.now(UTC) > due_at + LOOKED_AT, "the waiting job to be due", SOON_S)
        life.await_statuses(done="succeeded", failed="failed", running="succeeded", waiting="queued")
        assert scene.run_command("tenants", "restore", TENANT).returncode == 0
        life.await_statuses(waiting="succeeded")


@on_each_engine
def test_cancel(make_place: MakePlace, tmp_path: Path) -> None:
    with begun(make_place, tmp_path) as (scene, life):
        life.revoke(Revocation.CANCEL)
        assert life.refuses_work() == "tenant-suspended"
        life.await_statuses(done="succeeded", failed="failed", running="cancelled", waiting="cancelled")
        for order in (life.running, life.waiting):
            assert life.read(order)[1]["cancel_reason"] == REASON
        assert scene.run_command("tenants", "restore", TENANT).returncode == 2


@on_each_engine
def test_erase(make_place: MakePlace, tmp_path: Path) -> None:
    with begun(make_place, tmp_path) as (scene, life):
        life.revoke(Revocation.ERASE)
        ended = scene.run_command("tenants", "revoke", TENANT, "--policy", "erase", "--wait")
        assert ended.returncode == 0, ended.stderr
        for order in (life.done, life.failed, life.running, life.waiting):
            code, problem = life.read(order)
            assert code in (401, 410), problem
        wait_until(lambda: not any(scene.place.count_leftovers().values()), "nothing to be left")
