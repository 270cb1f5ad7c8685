"""Ten times more work than can be done, handed in by one tenant, while another goes on as before.

Figures stand beside those of the same server minutes earlier: a busy machine slows both down.
"""

import itertools
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

import httpx
import psutil

from coatcheck.store.clock import SystemClock
from coatcheck.testing.waiting import wait_until
from harness.server import QUIET, Server
from harness.store_place import store_url
from torture.outcome import Outcome, Task
from torture.overload_app import CAPACITY_PER_S, QUEUE_LIMIT_S

APP = "torture.overload_app:app"
FLOODING_CLIENTS = 4
CALM_PER_S = 2.0
ALONE_S = 15.0
GOODPUT_SHARE_MIN = 0.8
SLOWER_MAX = 2.0
MEMORY_MIB_MAX = 30.0
CLOCK = SystemClock()
_DONE = re.compile(r'^coatcheck_finished_total\{operation="work",status="succeeded"\} ([0-9.]+)$', re.MULTILINE)


@dataclass
class Stretch:
    """What was seen while some tenants handed in work."""

    seconds: float = 0.0
    done: float = 0.0
    calm_s: list[float] = field(default_factory=list)
    calm_refused: int = 0
    accepted: int = 0
    refused: int = 0
    strange: list[str] = field(default_factory=list)

    @property
    def goodput(self) -> float:
        return self.done / self.seconds

    @property
    def calm_p99_s(self) -> float:
        return quantiles(self.calm_s, n=100)[98]


def run(task: Task) -> Outcome:
    """`task.amount` seconds of flood."""
    server = Server(task.folder, [], QUIET | {"auth": "keys", "metrics_open": "true"}, APP)
    try:
        server.start()
        calm, flood = (_key(task.folder, tenant) for tenant in ("calm", "flood"))
        alone = _stretch(server, ALONE_S, calm, flood, 0)
        peak = _stretch(server, ALONE_S, calm, flood, CAPACITY_PER_S)
        process = psutil.Process(server.process.pid)
        # The first seconds of a flood fill what is kept for it.
        _stretch(server, QUEUE_LIMIT_S, calm, flood, 10 * CAPACITY_PER_S)
        before = process.memory_info().rss
        flooded = _stretch(server, task.amount, calm, flood, 10 * CAPACITY_PER_S)
        grown_mib = (process.memory_info().rss - before) / 2**20
        task.advance(task.amount)
        recovery_s = _recovery_s(server, calm)
        after = _stretch(server, ALONE_S, calm, flood, 0)
    finally:
        server.kill()
    return _outcome([alone, peak, flooded, after], grown_mib, recovery_s, server)


def _outcome(stretches: list[Stretch], grown_mib: float, recovery_s: float, server: Server) -> Outcome:
    alone, peak, flooded, after = stretches
    faults = [
        *(f"answered {words}" for stretch in stretches for words in stretch.strange[:10]),
        *(f"goodput fell to {flooded.goodput:.1f}/s from {peak.goodput:.1f}/s" for _ in _if(_is_poor(flooded, peak))),
        *(f"the other tenant waited {each.calm_p99_s:.2f} s" for each in (flooded, after) if _is_slow(each, alone)),
        *(f"the other tenant was refused {each.calm_refused} times" for each in stretches if each.calm_refused),
        *(f"memory grew by {grown_mib:.0f} MiB" for _ in _if(grown_mib > MEMORY_MIB_MAX)),
        *(f"a process told of a fault: {line}" for line in server.log_lines("request_failed")[:10]),
    ]
    figures: dict[str, float | int | str] = {
        "seconds": round(flooded.seconds),
        "goodput at capacity": f"{peak.goodput:.1f}/s",
        "goodput flooded": f"{flooded.goodput:.1f}/s",
        "accepted": flooded.accepted,
        "refused": flooded.refused,
        "other tenant's p99 alone": f"{alone.calm_p99_s:.2f} s",
        "other tenant's p99 flooded": f"{flooded.calm_p99_s:.2f} s",
        "normal again after": f"{recovery_s:.1f} s",
        "memory grew by": f"{grown_mib:.1f} MiB",
    }
    return Outcome(figures, faults)


def _is_poor(flooded: Stretch, peak: Stretch) -> bool:
    return flooded.goodput < GOODPUT_SHARE_MIN * peak.goodput


def _is_slow(each: Stretch, alone: Stretch) -> bool:
    return each.calm_p99_s > SLOWER_MAX * alone.calm_p99_s


def _if(holds: bool) -> range:
    return range(int(holds))


def _stretch(server: Server, seconds: float, calm: str, flood: str, flood_per_s: float) -> Stretch:
    stretch, is_over = Stretch(), threading.Event()
    began_s, done_before = CLOCK.monotonic_s(), _done(server)
    with ThreadPoolExecutor(1 + FLOODING_CLIENTS) as clients:
        working = [clients.submit(_be_calm, server.url, calm, stretch, is_over)]
        if flood_per_s:
            pause_s = FLOODING_CLIENTS / flood_per_s
            working += [
                clients.submit(_flood, server.url, flood, pause_s, stretch, is_over) for _ in range(FLOODING_CLIENTS)
            ]
        is_over.wait(seconds)
        stretch.seconds = CLOCK.monotonic_s() - began_s
        stretch.done = _done(server) - done_before
        is_over.set()
        for one in working:
            one.result()
    return stretch


def _be_calm(url: str, key: str, stretch: Stretch, is_over: threading.Event) -> None:
    """Hand in a little, and wait for each."""
    with _client(url, key) as http:
        while not is_over.wait(1 / CALM_PER_S):
            began_s = CLOCK.monotonic_s()
            answer = http.post("/v1/work", json={}, headers={"Prefer": "wait=10"})
            if answer.status_code == httpx.codes.OK:
                stretch.calm_s.append(CLOCK.monotonic_s() - began_s)
            elif answer.status_code in {429, 503}:
                stretch.calm_refused += 1
            else:
                stretch.strange.append(f"{answer.status_code} {answer.text}")


def _flood(url: str, key: str, pause_s: float, stretch: Stretch, is_over: threading.Event) -> None:
    """Hand in as much as one client can at this pace, whatever is said to it."""
    with _client(url, key) as http:
        next_s = CLOCK.monotonic_s()
        for number in itertools.count():
            next_s += pause_s
            if is_over.wait(max(0.0, next_s - CLOCK.monotonic_s())):
                return
            answer = http.post("/v1/work", json={"number": number})
            if answer.status_code == httpx.codes.ACCEPTED:
                stretch.accepted += 1
            elif answer.status_code in {429, 503} and "retry-after" in answer.headers:
                stretch.refused += 1
            else:
                stretch.strange.append(f"{answer.status_code} {answer.text}")


def _recovery_s(server: Server, calm: str) -> float:
    """How long until a new job is done as fast as if nobody else had any."""
    began_s = CLOCK.monotonic_s()
    with _client(server.url, calm) as http:
        wait_until(lambda: _queued(http) == 0, "the queue to be empty", 60.0)
    return CLOCK.monotonic_s() - began_s


def _queued(http: httpx.Client) -> int:
    text = http.get("/metrics").raise_for_status().text
    shown = re.findall(r'^coatcheck_ready_jobs\{operation="work"\} ([0-9.]+)$', text, re.MULTILINE)
    return round(float(shown[0])) if shown else 0


def _done(server: Server) -> float:
    answer = httpx.get(f"{server.url}/metrics", timeout=10).raise_for_status()
    found = _DONE.search(answer.text)
    return float(found[1]) if found else 0.0


def _client(url: str, key: str) -> httpx.Client:
    return httpx.Client(base_url=url, timeout=30, headers={"Authorization": f"Bearer {key}"})


def _key(folder: Path, tenant: str) -> str:
    store = ["--store", store_url(folder)]
    _operate("tenants", "add", tenant, *store)
    return _operate("keys", "create", tenant, *store)


def _operate(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "coatcheck", *command], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()
