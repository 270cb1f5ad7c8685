"""Several tenants who come at once, to several processes that share one store, and what their handlers saw."""

import signal
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Barrier
from typing import NamedTuple

import httpx

from coatcheck.store.clock import SystemClock
from coatcheck.testing.history import Entry, Mark, read_history
from coatcheck.testing.history_runs import RUN
from coatcheck.testing.waiting import wait_until
from harness.http import Client, JsonObject
from harness.server import QUIET, Server

APP = "faults.crowd_app:app"
OPERATOR_KEY = "an-operator-s-key-of-forty-characters-xx"
OPERATOR = {"Authorization": f"Bearer {OPERATOR_KEY}"}
GATEWAY = {"auth": "gateway", "gateway_networks": "127.0.0.0/8", "operator_key": OPERATOR_KEY}
CLIENTS = 8
DONE_S = 60.0
ALL_START_S = 60.0
"""Several start at once."""
CLOCK = SystemClock()


class Wish(NamedTuple):
    """What a tenant wants done."""

    tenant: str
    operation: str


class Run(NamedTuple):
    """One attempt as its handler saw it; one that was killed ended when its process was seen dead."""

    wish: Wish
    attempt: int
    process: str
    began_us: int
    ended_us: int


class Crowd:
    """One store, the processes on it, and tenants that it knows."""

    def __init__(self, folder: Path, url: str, opened: ExitStack, settings: Mapping[str, str]) -> None:
        self.jobs: dict[str, tuple[Wish, JsonObject]] = {}
        self.tenants: tuple[str, ...] = ()
        self._folder, self._url, self._open = folder, url, opened
        self._settings = {**QUIET, **GATEWAY, **settings}
        self._history, self._gate = folder / "history.jsonl", folder / "gate"
        self._history.touch()
        self._edges: list[Client] = []
        self._dead_us: dict[str, int] = {}

    def serve(self, *roles: str) -> list[Server]:
        """Start a process for each of these roles, and wait until they all serve."""
        servers = self.launch(*roles)
        self.await_started(*servers)
        return servers

    def launch(self, *roles: str, crash_at: str | None = None) -> list[Server]:
        """Start a process for each of these roles."""
        settings = self._settings | ({} if crash_at is None else {"crash_at": crash_at})
        servers = []
        for role in roles:
            server = Server(self._folder, ["--store", self._url, "--roles", role], settings, APP)
            self._open.callback(server.kill)
            server.launch()
            servers.append(server)
        return servers

    def await_started(self, *servers: Server) -> None:
        """Wait until these serve."""
        wait_until(lambda: all(server.log_lines("started") for server in servers), "processes to start", ALL_START_S)
        urls = [server.url for server in servers if server.log_lines("started")[-1]["url"]]
        self._edges += [self._open.enter_context(closing(Client(url))) for url in urls]

    def let_in(self, *tenants: str) -> None:
        """Add these tenants, and wait until every process that serves requests knows them."""
        self.tenants = tenants
        for tenant in tenants:
            added = self._edges[0].http.post("/admin/tenants", json={"name": tenant}, headers=OPERATOR)
            assert added.status_code == 201, added.text

        def are_known() -> bool:
            return all(_as(edge, tenant, "/v1/jobs").is_success for edge in self._edges for tenant in tenants)

        wait_until(are_known, "the tenants to be known")

    def hand_in(self, *wishes: Wish) -> list[httpx.Response]:
        """Everything at once, by several clients who begin together and go round the processes."""
        start, body = Barrier(CLIENTS), {"history": str(self._history), "gate": str(self._gate)}

        def ask(number: int) -> list[httpx.Response]:
            edge, mine = self._edges[number % len(self._edges)], wishes[number::CLIENTS]
            start.wait()
            return [edge.post(wish.operation, body, X_Consumer_Username=wish.tenant) for wish in mine]

        with ThreadPoolExecutor(CLIENTS) as pool:
            answered = list(pool.map(ask, range(CLIENTS)))
        answers = [answered[number % CLIENTS][number // CLIENTS] for number in range(len(wishes))]
        taken = [(wish, answer.json()) for wish, answer in zip(wishes, answers, strict=True) if answer.is_success]
        self.jobs |= {job["id"]: (wish, job) for wish, job in taken}
        return answers

    def listed(self, tenant: str, status: str) -> list[JsonObject]:
        """A tenant's jobs with this status."""
        answer = _as(self._edges[0], tenant, f"/v1/jobs?limit=200&status={status}")
        assert answer.status_code == 200, answer.text
        jobs: list[JsonObject] = answer.json()["jobs"]
        return jobs

    def cancel(self, job_id: str) -> None:
        """Cancel a job that waits."""
        wish, job = self.jobs[job_id]
        answer = self._edges[0].http.post(job["cancel_url"], headers={"X-Consumer-Username": wish.tenant})
        assert answer.status_code == 200, answer.text

    def let_go(self) -> None:
        """Handlers end from now on, each after a moment."""
        self._gate.touch()

    def await_deaths(self, *victims: Server) -> None:
        """Wait until these have killed themselves."""
        with ThreadPoolExecutor(len(victims)) as pool:
            codes = list(pool.map(self._see_dead, victims))
        assert codes == [-signal.SIGKILL] * len(victims), [victim.log[-2000:] for victim in victims]

    def kill(self, victim: Server) -> None:
        """Kill it, with its handlers."""
        victim.kill()
        self._see_dead(victim)

    def await_ends(self) -> None:
        """Wait until every job that was accepted has succeeded."""

        def are_done() -> bool:
            return sum(len(self.listed(tenant, "succeeded")) for tenant in self.tenants) == len(self.jobs)

        wait_until(are_done, "every job to succeed", DONE_S)

    def runs(self) -> list[Run]:
        """Every attempt that was started, so far."""
        entries = [entry for entry in read_history([self._history]) if entry.what == RUN]
        ends = {(entry.job_id, entry.attempt): entry.at_us for entry in entries if entry.mark is not Mark.INVOKE}
        return [self._run(entry, ends) for entry in entries if entry.mark is Mark.INVOKE]

    def _run(self, began: Entry, ends: Mapping[tuple[str | None, int | None], int]) -> Run:
        assert began.job_id is not None
        assert began.attempt is not None
        wish, _ = self.jobs[began.job_id]
        ended_us = ends.get((began.job_id, began.attempt)) or self._dead_us.get(began.who) or _now_us()
        return Run(wish, began.attempt, began.who, began.at_us, ended_us)

    def _see_dead(self, victim: Server) -> int:
        code = victim.ended()
        runners = [f"handler-{line['pid']}" for line in victim.log_lines("runner_ready")]
        self._dead_us |= dict.fromkeys(runners, _now_us())
        return code


@contextmanager
def opened_crowd(folder: Path, url: str, **settings: object) -> Iterator[Crowd]:
    """A crowd whose processes end with the block."""
    with ExitStack() as opened:
        yield Crowd(folder, url, opened, {name: str(value) for name, value in settings.items()})


def most_at_once(runs: Sequence[Run], key: Callable[[Run], Hashable]) -> dict[Hashable, int]:
    """For each value of the key, how many of its runs there were at the same time at most."""
    moves: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for run in runs:
        moves[key(run)] += [(run.began_us, 1), (run.ended_us, -1)]
    return {name: _highest(sorted(steps)) for name, steps in moves.items()}


def _highest(steps: Sequence[tuple[int, int]]) -> int:
    running = highest = 0
    for _, step in steps:
        running += step
        highest = max(highest, running)
    return highest


def _as(edge: Client, tenant: str, path: str) -> httpx.Response:
    return edge.get(path, X_Consumer_Username=tenant)


def _now_us() -> int:
    return round(CLOCK.monotonic_s() * 1_000_000)
