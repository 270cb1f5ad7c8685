"""One store, the processes that share it, and clients that keep at it until everything they want is done.

Everybody writes into one history. `come_to_rest` waits until nothing moves, dumps everything and asks the checker.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from coatcheck.store.clock import SystemClock
from coatcheck.testing.checker import check
from coatcheck.testing.checker_evidence import DUMP, HEALED, Evidence, Kept, Rules, gather, read_events
from coatcheck.testing.history import HistoryWriter, Mark
from coatcheck.testing.history_client import Ask, HistoryClient, JsonObject, NoReply, Reply, Send, Wanted
from coatcheck.testing.waiting import wait_until
from faults.fault_app import BRIEF_S
from faults.places import Place, sqlite
from harness.server import FRAGILE, Server, server_environment

APP = "faults.fault_app:app"
LEASE_S = 1.5
ANSWER_S = 10.0
START_S = 30.0
COMMAND_S = 60.0
REST_S = 30.0

RECOVERY_S_MAX = 2 * LEASE_S + 9.0
"""Two lease times, and what two busy cores may add."""

RULES = Rules(
    kept={"brief": Kept(job_s=BRIEF_S, tombstone_s=3600.0)},
    recovery_s_max=RECOVERY_S_MAX,
)


@dataclass
class Order:
    """Something wanted, and the job that was made of it once a client knows."""

    wanted: Wanted
    job: JsonObject | None = None


class BuggyServer(Server):
    """A server in which a bug of `faults.crash_bugs` is planted."""

    def __init__(self, bug: str, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._bug = bug

    def command(self) -> list[str]:
        command = super().command()
        return [command[0], "-m", "faults.crash_bugs", self._bug, *command[command.index("coatcheck") + 1 :]]


class Scene:
    """Everything of one test lies in one folder, but for a store that a server keeps."""

    def __init__(self, folder: Path, place: Place, lease_s: float) -> None:
        self.folder = folder
        self.place = place
        self._lease_s = lease_s
        self.history = folder / "history.jsonl"
        self.gate = folder / "gate"
        self.events = folder / "events.jsonl"
        self.orders: list[Order] = []
        self.url = ""
        self._open = ExitStack()
        self.servers: list[Server] = []
        self.client = self._client_named("client")
        self._mender = self._open.enter_context(HistoryWriter(self.history, "mender"))

    def settings(self, crash_at: str | None = None) -> Mapping[str, str]:
        """The settings of a process of this scene."""
        own = {"lease_s": str(self._lease_s), "events": f"file:{self.events}", "grace_s": "0", "cancel_grace_s": "0.5"}
        return {**FRAGILE, **own, **({} if crash_at is None else {"crash_at": crash_at})}

    def launch(self, roles: str, crash_at: str | None = None, bug: str | None = None) -> Server:
        """Start a process, which may kill itself or have a bug, and do not wait for it."""
        arguments = (self.folder, ["--store", self.place.url, "--roles", roles], self.settings(crash_at), APP)
        server = Server(*arguments) if bug is None else BuggyServer(bug, *arguments)
        server.launch()
        self.servers.append(server)
        return server

    def run_command(self, *words: str, crash_at: str | None = None) -> "subprocess.CompletedProcess[str]":
        """Run `coatcheck` with these words on this scene's store, to its end."""
        return subprocess.run(
            [sys.executable, "-m", "coatcheck", *words, "--store", self.place.url],
            env=server_environment(self.settings(crash_at)),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )

    def await_started(self, *servers: Server) -> None:
        """Wait until these processes serve; clients talk to the last one that has an API."""
        for server in servers:
            _await_started(server)
            if server.log_lines("started")[-1]["url"]:
                self.url = server.url
                self.client.send = self._sender_to(server.url)

    def heal(self) -> None:
        """Say that from now on nothing is broken."""
        self._mender.write(Mark.OK, HEALED, more={"wall_ms": SystemClock().now()})

    def order(self, operation: str, *plan: str, padding: int = 0, **headers: str) -> Order:
        """Want a job that does this, under a key of its own, and ask for it once."""
        order = self.want(operation, *plan, padding=padding, **headers)
        _ask_for(self.client, order)
        return order

    def want(self, operation: str, *plan: str, padding: int = 0, **headers: str) -> Order:
        """Want a job, and ask for nothing yet."""
        body: dict[str, Any] = {"plan": list(plan), "history": str(self.history), "gate": str(self.gate)}
        if padding:
            body["padding"] = "x" * padding
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        order = Order(Wanted(operation, body, f"key-{len(self.orders)}", given))
        self.orders.append(order)
        return order

    def ask_at_once(self, orders: Sequence[Order], clients: int = 4) -> None:
        """Ask for all of these, with several clients at the same time."""

        def ask(number: int) -> None:
            client = self._client_named(f"client-{len(self.orders)}-{number}")
            client.send = self.client.send
            for order in orders[number::clients]:
                _ask_for(client, order)

        with ThreadPoolExecutor(clients) as pool:
            for asking in [pool.submit(ask, number) for number in range(clients)]:
                asking.result()

    def ask_again(self) -> None:
        """Ask once more for everything that is not known to be accepted. It must be now."""
        for order in self.orders:
            if order.job is None:
                _ask_for(self.client, order)
            assert order.job is not None, f"{order.wanted.key} is not accepted"

    def until(self, order: Order, status: str) -> None:
        """Wait until a job has this status."""
        assert order.job is not None, "it was accepted"
        job = order.job
        seen: list[Reply | None] = []

        def look() -> bool:
            reply = self.client.read(job)
            seen[:] = [reply]
            return reply is not None and reply.json.get("status") == status

        try:
            wait_until(look, f"{job['id']} to be {status}", REST_S)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the last answer was {seen}") from error

    def come_to_rest(self) -> Evidence:
        """Wait until nothing moves, dump everything, and have every promise checked."""
        wait_until(lambda: not any(self.place.count_leftovers().values()), "everything to be done", REST_S)
        dumper = self._client_named(DUMP)
        dumper.send = self.client.send
        known = {event["subject"]: _known(event) for event in read_events(self.events)}
        known |= {order.job["id"]: order.job for order in self.orders if order.job is not None}
        dumper.dump(known.values(), self.place.count_leftovers() | self.place.count_damage())
        evidence = gather([self.history], self.events)
        violations = check(evidence, replace(RULES, has_doubtful_commits=self.place.has_doubtful_commits))
        assert not violations, "\n".join(map(str, violations))
        return evidence

    def close(self) -> None:
        """End every process, as a power cut would, and every connection."""
        for server in self.servers:
            server.kill()
        self._open.close()

    def _client_named(self, who: str) -> HistoryClient:
        return HistoryClient(_nowhere, self._open.enter_context(HistoryWriter(self.history, who)))

    def _sender_to(self, url: str) -> Send:
        """Sends over kept connections; whatever goes wrong on the way is no answer."""
        http = self._open.enter_context(httpx.Client(base_url=url, timeout=ANSWER_S))

        def send(ask: Ask) -> Reply:
            try:
                answer = http.request(ask.method, ask.path, headers=dict(ask.headers), content=ask.body)
            except httpx.TransportError as error:
                raise NoReply(type(error).__name__) from error
            return Reply(answer.status_code, dict(answer.headers), answer.content)

        return send


@contextmanager
def opened_scene(folder: Path, place: Place | None = None, lease_s: float = LEASE_S) -> Iterator[Scene]:
    """A scene whose processes end with the block; on SQLite unless a place is given."""
    scene = Scene(folder, place or sqlite(folder), lease_s)
    try:
        yield scene
    finally:
        scene.close()


def _ask_for(client: HistoryClient, order: Order) -> None:
    reply = client.submit(order.wanted)
    if reply is not None:
        assert reply.status == httpx.codes.ACCEPTED, f"{reply.status} {reply.body!r}"
        order.job = reply.json


def _nowhere(ask: Ask) -> Reply:
    raise NoReply("nothing serves yet")


def _await_started(server: Server) -> None:
    wait_until(lambda: bool(server.log_lines("started")) or not server.is_running, "a process to start", START_S)
    assert server.log_lines("started"), server.log[-4000:]


def _known(event: JsonObject) -> JsonObject:
    """What is needed to look for a job of which only an event tells."""
    return {"id": event["subject"], "status_url": f"/v1/{event['operation']}/{event['subject']}"}
