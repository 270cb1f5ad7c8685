"""The soak's client: a steady stream of work, each job looked at again until it has ended."""

import itertools
import threading
from collections import deque
from dataclasses import dataclass, field

import httpx

from coatcheck.store.clock import SystemClock

JOBS_PER_S = 20
LOOK_AFTER_S = 2.0
LOOKS_EACH_TURN = 3
PATIENCE_S = 20.0
CLOCK = SystemClock()


@dataclass
class Client:
    """What it was told, what was wrong with it, and how late the first starts were since somebody last asked."""

    accepted: int = 0
    refused: int = 0
    ended: int = 0
    broken: list[str] = field(default_factory=list)
    _late_ms: list[float] = field(default_factory=list)
    _waiting: deque[tuple[float, str]] = field(default_factory=deque)

    def work(self, url: str, is_over: threading.Event) -> None:
        """Hand in and look until it is over."""
        with httpx.Client(base_url=url, timeout=10) as http:
            for number in itertools.count():
                if is_over.wait(1 / JOBS_PER_S):
                    return
                try:
                    self._hand_in(http, number)
                    for _ in range(LOOKS_EACH_TURN):
                        self._look(http)
                except httpx.TransportError as error:
                    self.broken.append(f"no answer: {type(error).__name__} {error}")

    def take_late_ms(self) -> list[float]:
        """How many ms after its acceptance each of these jobs started."""
        late_ms, self._late_ms = self._late_ms, []
        return late_ms

    def _hand_in(self, http: httpx.Client, number: int) -> None:
        answer = http.post("/v1/work", json={"number": number}, headers={"Idempotency-Key": f"key-{number}"})
        if answer.status_code == httpx.codes.ACCEPTED:
            self.accepted += 1
            self._waiting.append((CLOCK.monotonic_s(), answer.headers["location"]))
        elif answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            self.refused += 1
        else:
            self.broken.append(f"{answer.status_code} {answer.text}")

    def _look(self, http: httpx.Client) -> None:
        """At the job that was looked at least recently. One that has already expired has ended, too."""
        if not self._waiting or CLOCK.monotonic_s() - self._waiting[0][0] < LOOK_AFTER_S:
            return
        accepted_s, url = self._waiting.popleft()
        answer = http.get(url)
        if answer.status_code == httpx.codes.GONE or (answer.status_code == httpx.codes.OK and answer.json()["done"]):
            self.ended += 1
            self._note_lateness(answer)
        elif answer.status_code not in {httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE}:
            self.broken.append(f"{url}: {answer.status_code} {answer.text}")
        elif CLOCK.monotonic_s() - accepted_s > PATIENCE_S:
            self.broken.append(f"{url}: not done {PATIENCE_S:.0f} s after its 202: {answer.text}")
        else:
            self._waiting.append((accepted_s, url))

    def _note_lateness(self, answer: httpx.Response) -> None:
        job = answer.json()
        if job.get("attempt") == 1 and job.get("started_at"):
            self._late_ms.append(_instant_ms(job["started_at"]) - _instant_ms(job["created_at"]))


def _instant_ms(text: str) -> float:
    hours, minutes, seconds = text[11:].removesuffix("Z").split(":")
    return (int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000
