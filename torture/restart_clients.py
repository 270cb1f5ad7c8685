"""A client of a service whose database comes and goes: it asks under a key until it has an answer, and looks back."""

import threading
from collections.abc import Sequence
from random import Random

import httpx

from coatcheck.store.clock import SystemClock
from coatcheck.testing.history import HistoryWriter
from coatcheck.testing.history_client import HistoryClient
from faults.scene import Order, Scene

JOBS_PER_S = 10
AGAIN_S = 0.1
PATIENCE_S = 60.0
LOOKS_BACK = 0.3
CLOCK = SystemClock()


class Customer:
    """One client with the orders it has to bring in. `asked_again` counts what got no answer, or was answered 503.

    `looks_back`: how probable it is that it looks at an order again, or cancels it, after bringing one in.
    """

    def __init__(
        self, scene: Scene, number: int, orders: Sequence[Order], chance: Random, looks_back: float = LOOKS_BACK
    ) -> None:
        self._scene = scene
        self._who = f"customer-{number}"
        self._orders = orders
        self._chance = chance
        self._looks_back = looks_back
        self._never = threading.Event()
        self.asked_again = 0

    def work(self) -> None:
        """Bring everything in, at a steady pace as long as there are answers.

        Raises:
            TimeoutError: something was not accepted for long.
        """
        with HistoryWriter(self._scene.history, self._who) as writer:
            client = HistoryClient(self._scene.client.send, writer)
            for order in self._orders:
                self._never.wait(self._chance.uniform(0.5, 1.5) / JOBS_PER_S)
                self._insist(client, order)
                if self._chance.random() < self._looks_back:
                    self._look_back(client)

    def _insist(self, client: HistoryClient, order: Order) -> None:
        give_up_s = CLOCK.monotonic_s() + PATIENCE_S
        while order.job is None:
            reply = client.submit(order.wanted)
            if reply is not None and reply.status == httpx.codes.ACCEPTED:
                order.job = reply.json
                return
            assert reply is None or reply.status == httpx.codes.SERVICE_UNAVAILABLE, f"{reply.status} {reply.body!r}"
            if CLOCK.monotonic_s() > give_up_s:
                raise TimeoutError(f"{order.wanted.key} is not accepted after {PATIENCE_S:g} s")
            self.asked_again += 1
            self._never.wait(AGAIN_S)

    def _look_back(self, client: HistoryClient) -> None:
        """At one that is known to be accepted; the checker knows what may be answered."""
        order = self._chance.choice([order for order in self._orders if order.job is not None])
        assert order.job is not None, "only those were chosen from"
        match self._chance.randrange(4):
            case 0:
                client.submit(order.wanted)
            case 1:
                client.cancel(order.job)
            case _:
                client.read(order.job)
