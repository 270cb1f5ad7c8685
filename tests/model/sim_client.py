"""A client of a story: hands work in over HTTP, tries again when it does not know, and checks what it is told."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from coatcheck.testing.history_client import Verb
from coatcheck.testing.simulation_loop import SimulatedProcess, pass_time

from .sim_caller import UNKNOWN, Ask, Caller
from .sim_node import Node
from .sim_record import Record

TRIES = 12
STEPS = (
    ["work 0.3"],
    ["work 1", "effect mail", "work 2"],
    ["progress 0.1", "work 4", "progress 0.9", "work 1"],
    ["effect charge", "crash", "effect mail"],
    ["work 0.5", "fail once", "effect mail"],
    ["effect mail", "fail always"],
    ["work 1", "refuse"],
    ["later 5", "work 0.2"],
    ["effect mail", "work 12", "effect charge"],
    ["work 20"],
    ["work 25"],
    ["work 80"],
    ["deaf 30"],
)


@dataclass(slots=True)
class Wish:
    """One piece of work a client wants done. `job_ids` are those it was told, which must all be the same."""

    operation: str
    body: dict[str, Any]
    headers: dict[str, str]
    delay_s: float
    job_ids: set[str]
    last: dict[str, Any] | None = None
    is_erased: bool = False


class Client:
    """Sends its wishes one after the other."""

    def __init__(self, name: str, nodes: Sequence[Node], record: Record, random: Random) -> None:
        self.wishes: list[Wish] = []
        self._name = name
        self._record = record
        self._random = random
        self._caller = Caller(name, nodes, record, random)
        self._process = SimulatedProcess(record.loop, name)
        self._numbers = 0

    def start(self, wishes: int) -> "asyncio.Task[None]":
        return self._process.run(self._live(wishes))

    async def _live(self, wishes: int) -> None:
        following = []
        for _ in range(wishes):
            await pass_time(self._random.random() * 6)
            wish = self._make_wish()
            self.wishes.append(wish)
            following.append(asyncio.create_task(self._pursue(wish)))
        await asyncio.gather(*following)

    def _make_wish(self) -> Wish:
        random = self._random
        self._numbers += 1
        headers = {}
        delay_s = random.choice([0, 0, 0, 2, 30])
        if delay_s:
            headers["job-start-after"] = str(delay_s)
        if random.random() < 0.15:
            headers["job-deadline"] = str(delay_s + random.choice([1, 10, 60]))
        if random.random() < 0.7:
            headers["idempotency-key"] = f"{self._name}-{self._numbers}"
        headers["job-priority"] = str(random.randrange(10))
        operation = random.choice(["tasks", "tasks", "tasks", "solos", "scarce"])
        body = {"number": self._numbers, "steps": random.choice(STEPS)}
        return Wish(operation, body, headers, delay_s, set())

    async def _pursue(self, wish: Wish) -> None:
        if await self._hand_in(wish):
            await self._follow(wish)

    async def _hand_in(self, wish: Wish) -> bool:
        has_key = "idempotency-key" in wish.headers
        for _ in range(TRIES):
            path = f"/v1/{wish.operation}"
            answer = await self._caller.call(
                Ask(Verb.SUBMIT, "POST", path, wish.headers, wish.body, operation=wish.operation)
            )
            if answer.status == 202:
                self._note(wish, answer.body)
                if not has_key or self._random.random() < 0.8:
                    return True
            elif answer.status not in (0, 503):
                self._record.blame(f"POST answered {answer.status}: {answer.body}")
                return False
            elif answer.status == 0 and not has_key:
                return False
            await pass_time(0.2 + self._random.random() * 5)
        return bool(wish.job_ids)

    def _note(self, wish: Wish, job: dict[str, Any]) -> None:
        wish.job_ids.add(job["id"])
        if len(wish.job_ids) > 1:
            self._record.blame(f"one key, several jobs: {wish.job_ids}")
        self._compare(wish, job)

    async def _follow(self, wish: Wish) -> None:
        random, url = self._random, f"/v1/{wish.operation}/{min(wish.job_ids)}"
        cancel_at = random.randrange(8) if random.random() < 0.2 else -1
        looks = 0
        while wish.last is None or not wish.last["done"]:
            if looks == cancel_at:
                await self._cancel(wish, url)
            looks += 1
            await self._look(wish, url)
            await pass_time(0.5 + random.random() * 5)
        if random.random() < 0.1:
            await self._erase(wish, url)

    async def _look(self, wish: Wish, url: str) -> None:
        headers = {"prefer": f"wait={self._random.randrange(1, 20)}"} if self._random.random() < 0.4 else {}
        if self._random.random() < 0.5 and wish.last is not None:
            headers["if-none-match"] = f'"{wish.last["version"]}"'
        answer = await self._caller.call(Ask(Verb.READ, "GET", url, headers, job_id=min(wish.job_ids)))
        if answer.status == 200:
            self._compare(wish, answer.body)
        elif answer.status not in (0, 304, 503):
            self._record.blame(f"GET {url} answered {answer.status} after its 202")

    async def _cancel(self, wish: Wish, url: str) -> None:
        answer = await self._caller.call(Ask(Verb.CANCEL, "POST", f"{url}/cancel", job_id=min(wish.job_ids)))
        if answer.status in (200, 202):
            self._compare(wish, answer.body)

    async def _erase(self, wish: Wish, url: str) -> None:
        wish.is_erased = True
        answer = UNKNOWN
        while answer.status in (0, 503):
            answer = await self._caller.call(Ask(Verb.ERASE, "DELETE", url, job_id=min(wish.job_ids)))
            await pass_time(1.0)
        if answer.status not in (204, 410):
            self._record.blame(f"DELETE answered {answer.status}: {answer.body}")

    def _compare(self, wish: Wish, job: dict[str, Any]) -> None:
        """A job never goes back, and its end is final."""
        last = wish.last
        if last is not None and last["version"] > job["version"]:
            # Two looks may overtake each other only if they were on their way together: these were not.
            self._record.blame(f"{job['id']} went back from version {last['version']} to {job['version']}")
        if last is not None and last["done"] and last["status"] != job["status"]:
            self._record.blame(f"{job['id']} was {last['status']} and is {job['status']}")
        wish.last = job
