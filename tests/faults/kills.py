"""Where processes are killed: each fault point, in each role that passes it, with what makes it pass."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import httpx
import pytest

from coatcheck.testing.history import Mark, read_history
from coatcheck.testing.history_runs import RUN
from coatcheck.testing.waiting import wait_until
from faults.places import ENGINES, LACKS
from faults.points import points_of_engine
from faults.scene import Scene
from harness.http import Client, JsonObject

API, WORKER, RELAY, UPKEEP = "api", "worker", "relay", "upkeep"
ALL = "api,worker,relay,upkeep"
NOT_API, NOT_WORKER, NOT_RELAY, NOT_UPKEEP = (
    "worker,relay,upkeep",
    "api,relay,upkeep",
    "api,worker,upkeep",
    "api,worker,relay",
)
NOTHING = ""

MANY = 12
LARGE_BYTES = 1_000_000
WAL_BYTES = 9_000_000


def do_nothing(scene: Scene) -> None:
    """Nothing more is needed."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One death: of the process with these roles, at the nth pass of the point, while another lives on `beside` it.

    before: what happened earlier. act: what makes the victim pass the point. then: what clients do once it is back,
    as `again`. All that was wanted is asked for again anyway.
    """

    point: str
    victim: str
    act: Callable[[Scene], None]
    nth: int = 1
    beside: str = NOTHING
    before: Callable[[Scene], None] = do_nothing
    then: Callable[[Scene], None] = do_nothing
    again: str | None = None

    def __str__(self) -> str:
        return f"{self.point}-in-{self.victim.replace(',', '+')}-{self.act.__name__}"


def hand_in_many(scene: Scene) -> None:
    """Several clients hand in work at the same time; commits hold more than one of them."""
    scene.ask_at_once([scene.want("work", "return") for _ in range(MANY)])


def hand_in_a_mixture(scene: Scene) -> None:
    """Jobs that succeed at once, with an effect, or at the second try, and jobs that fail at once or in the end."""
    scene.ask_at_once(
        [
            scene.want(operation, *plan)
            for operation, *plan in (
                ("work", "return"),
                ("work", "effect"),
                ("work", "raise", "effect"),
                ("doomed", "raise"),
                ("doomed", "fail"),
                ("work", "return"),
                ("work", "raise", "return"),
            )
        ]
    )


def hand_in_and_wait(scene: Scene) -> None:
    """Jobs that tell their progress and wait."""
    for _ in range(3):
        scene.order("work", "tell")


def hand_in_spending(scene: Scene) -> None:
    """A job that spends once in each attempt."""
    scene.order("work", "spend")


def hand_in_priced(scene: Scene) -> None:
    """Several clients hand in work that is charged."""
    scene.ask_at_once([scene.want("priced", "return") for _ in range(MANY)])


def read_what_was_charged(scene: Scene) -> None:
    """Each job is charged once, however often it was asked for."""
    scene.ask_again()
    told = scene.run_command("tenants", "spending", "default", "--json")
    assert told.returncode == 0, told.stderr
    assert sum(row["charged"] for row in json.loads(told.stdout)["spending"]) == MANY


def read_what_is_left(scene: Scene) -> None:
    """What the dead attempt spent is counted, and counted once."""
    order = scene.orders[0]
    scene.until(order, "succeeded")
    assert order.job is not None
    reply = scene.client.read(order.job)
    assert reply is not None
    assert reply.json["result"] == {"attempt": 2, "left": 0}


def hand_in_large_work(scene: Scene) -> None:
    """More bytes than the log may hold."""
    scene.ask_at_once([scene.want("work", "return", padding=LARGE_BYTES) for _ in range(WAL_BYTES // LARGE_BYTES + 1)])


def hand_in_with_a_deadline(scene: Scene) -> None:
    """A job that nobody starts before its deadline."""
    scene.order("dated", "return", Job_Deadline="0.3")


def hand_in_briefly_kept(scene: Scene) -> None:
    """Jobs that expire a second after their end."""
    for _ in range(3):
        scene.order("brief", "return")


def cancel_running(scene: Scene) -> None:
    """A running job is told to stop."""
    order = scene.order("work", "wait")
    scene.until(order, "running")
    assert order.job is not None
    assert scene.client.cancel(order.job) is None, "it dies while it answers"


def cancel_again(scene: Scene) -> None:
    """Clients who got no answer ask again, until it is done."""
    order = scene.orders[0]
    assert order.job is not None
    reply = scene.client.cancel(order.job)
    assert reply is not None
    assert reply.status in (httpx.codes.OK, httpx.codes.ACCEPTED, httpx.codes.CONFLICT)


def erase_finished(scene: Scene) -> None:
    """A finished job is erased."""
    order = scene.order("work", "return")
    scene.until(order, "succeeded")
    assert order.job is not None
    assert scene.client.erase(order.job) is None, "it dies while it answers"


def erase_again(scene: Scene) -> None:
    order = scene.orders[0]
    assert order.job is not None
    reply = scene.client.erase(order.job)
    assert reply is not None
    assert reply.status == httpx.codes.NO_CONTENT, "the erasure was in no commit"
    gone = scene.client.read(order.job)
    assert gone is not None
    assert gone.status == httpx.codes.GONE


def follow_a_job(scene: Scene) -> None:
    """A client is in the middle of a stream, which breaks off."""
    order = scene.order("work", "wait")
    _await_run(scene)
    assert order.job is not None
    talking = Client(scene.url)
    with closing(talking), pytest.raises(httpx.TransportError):
        _read_to_the_end(talking, order.job)


def _read_to_the_end(talking: Client, job: JsonObject) -> None:
    with talking.stream(job) as events:
        assert next(events).type == "status"
        list(events)


def follow_on(scene: Scene) -> None:
    """The client resumes its stream where it broke off."""
    job = scene.orders[0].job
    assert job is not None
    talking = Client(scene.url)
    with closing(talking), talking.stream(job, Last_Event_ID=str(job["version"])) as events:
        kinds = [event.type for event in events if event.type != "comment"]
    assert kinds[-1] == "done"


def leave_leases(scene: Scene) -> None:
    """A process that held jobs was killed, and nobody has noticed yet."""
    first = scene.launch(NOT_UPKEEP, "mid-handler:2")
    scene.await_started(first)
    for _ in range(3):
        scene.order("work", "tell", "return")
    first.ended()
    first.kill()


def _await_run(scene: Scene) -> None:
    """Wait, without asking the service, until a handler has started."""

    def has_begun() -> bool:
        return any(entry.what == RUN and entry.mark is Mark.INVOKE for entry in read_history([scene.history]))

    wait_until(has_begun, "a handler to start")


KILLS: Sequence[Kill] = (
    Kill("request-read", API, hand_in_many, nth=3, beside=NOT_API),
    Kill("key-reserved", API, hand_in_many, nth=2, beside=NOT_API),
    Kill("before-commit", API, hand_in_many, nth=2, beside=NOT_API),
    Kill("before-commit", API, hand_in_priced, nth=3, beside=NOT_API, then=read_what_was_charged),
    Kill("after-commit-before-response", API, hand_in_priced, nth=3, beside=NOT_API, then=read_what_was_charged),
    Kill("before-commit", WORKER, hand_in_a_mixture, nth=6, beside=NOT_WORKER),
    Kill("before-commit", RELAY, hand_in_a_mixture, beside=NOT_RELAY),
    Kill("before-commit", UPKEEP, hand_in_a_mixture, nth=12, beside=NOT_UPKEEP),
    Kill("committed-before-mark", API, hand_in_many, nth=2, beside=NOT_API),
    Kill("committed-before-mark", WORKER, hand_in_a_mixture, nth=3, beside=NOT_WORKER),
    Kill("after-commit-before-response", API, hand_in_many, nth=3, beside=NOT_API),
    Kill("after-commit-before-response", ALL, hand_in_many, nth=7),
    Kill("response-half-sent", API, hand_in_many, nth=4, beside=NOT_API),
    Kill("response-half-sent", API, follow_a_job, nth=2, beside=NOT_API, then=follow_on),
    Kill("outbox-written", API, hand_in_many, nth=2, beside=NOT_API),
    Kill("outbox-written", WORKER, hand_in_a_mixture, nth=2, beside=NOT_WORKER),
    Kill("outbox-written", UPKEEP, hand_in_with_a_deadline, beside="api,relay", again="worker,upkeep"),
    Kill("outbox-sent-before-mark", RELAY, hand_in_a_mixture, beside=NOT_RELAY),
    Kill("outbox-sent-before-mark", ALL, hand_in_a_mixture),
    Kill("claim-before-commit", WORKER, hand_in_many, beside=NOT_WORKER),
    Kill("claim-before-commit", ALL, hand_in_a_mixture, nth=2),
    Kill("claimed-before-start", WORKER, hand_in_many, nth=3, beside=NOT_WORKER),
    Kill("mid-handler", WORKER, hand_in_and_wait, nth=3, beside=NOT_WORKER),
    Kill("spent-before-answer", WORKER, hand_in_spending, beside=NOT_WORKER, then=read_what_is_left),
    Kill("result-stored-before-commit", WORKER, hand_in_many, beside=NOT_WORKER),
    Kill("result-stored-before-commit", ALL, hand_in_a_mixture, nth=2),
    Kill("complete-after-commit", WORKER, hand_in_many, nth=4, beside=NOT_WORKER),
    Kill("retry-scheduled", WORKER, hand_in_a_mixture, beside=NOT_WORKER),
    Kill("retry-scheduled", UPKEEP, do_nothing, beside=NOT_UPKEEP, before=leave_leases),
    Kill("dead-lettered", WORKER, hand_in_a_mixture, beside=NOT_WORKER),
    Kill("dead-lettered", UPKEEP, hand_in_with_a_deadline, beside="api,relay", again="worker,upkeep"),
    Kill("cancel-stored", API, cancel_running, beside=NOT_API, then=cancel_again),
    Kill("reap-selected", UPKEEP, do_nothing, beside=NOT_UPKEEP, before=leave_leases),
    Kill("reap-updated", UPKEEP, do_nothing, beside=NOT_UPKEEP, before=leave_leases),
    Kill("tombstone-written", API, erase_finished, beside=NOT_API, then=erase_again),
    Kill("tombstone-written", UPKEEP, hand_in_briefly_kept, beside=NOT_UPKEEP),
    Kill("purge-half", API, erase_finished, beside=NOT_API, then=erase_again),
    Kill("purge-half", UPKEEP, hand_in_briefly_kept, beside=NOT_UPKEEP),
    Kill("wal-checkpoint", ALL, hand_in_large_work),
)
"""Points inside a transaction may be passed once for a whole batch: nth is what the least lucky run reaches."""


def kills_on(engine: str) -> Sequence[Kill]:
    """The kills of one engine: all that it can die of, or with one engine before it, one at each point of its own.

    What is not the engine's own is killed enough on the first. TEST_KILLS=all kills everything on every engine.
    """
    possible = [kill for kill in KILLS if kill.point not in LACKS[engine]]
    if engine == next(iter(ENGINES)) or os.environ.get("TEST_KILLS") == "all":
        return possible
    return list(_first_at_each(possible, points_of_engine(engine)))


def _first_at_each(kills: Sequence[Kill], points: frozenset[str]) -> Iterator[Kill]:
    seen = set()
    for kill in kills:
        if kill.point in points and kill.point not in seen:
            seen.add(kill.point)
            yield kill
