"""Under attack: a client that behaves is served about as fast as ever, and memory does not grow."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from statistics import mean

import pytest

from coatcheck.testing.waiting import wait_until
from harness.http import Client
from harness.server import Server, server_environment

from .conftest import Limited
from .limited import memory_mib, open_connections
from .wire import Wire, get, post, wired

IDLE_WANTED = 5000
FILES_FOR_OTHERS = 600
FLOOR_S = 0.025
ROUNDS = 4
SAMPLES = 150
KIB_A_CONNECTION = 24
GROWTH_MIB_MAX = 64
WAVES = 8
COMPARED = 3
LEAK_MIB_MAX = 10
"""Between the mean after the first waves and after the last; what one wave leaves differs by as much."""
SEED = 8


def connections_allowed() -> int:
    """How many connections the limit of open files leaves to each of the two processes that hold them."""
    return min(IDLE_WANTED, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - FILES_FOR_OTHERS)


@contextmanager
def siege(server: Server, connections: int, seed: int, result_url: str) -> Iterator[None]:
    """An attack that is in full course while the block runs."""
    arguments = [str(server.port), str(connections), str(seed), result_url]
    with subprocess.Popen(
        [sys.executable, "-m", "hostile.attack", *arguments],
        env=server_environment({}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as attacker:
        try:
            assert attacker.stdout is not None
            assert attacker.stdin is not None
            assert attacker.stdout.readline() == "laid\n"
            yield
            attacker.stdin.close()
            assert attacker.stdout.readline() == "lifted\n"
        finally:
            attacker.kill()


def p99_s(wire: Wire) -> float:
    """What all but one in a hundred of a normal client's requests stay below."""
    times = []
    for number in range(SAMPLES):
        words, status = (post("/v1/anything", b"1"), 202) if number % 3 == 0 else (get("/v1/jobs?limit=1"), 200)
        began_s = time.perf_counter()
        wire.say(words)
        answer = wire.answer()
        times.append(time.perf_counter() - began_s)
        assert answer.status == status, answer
    return sorted(times)[-(SAMPLES // 100) - 1]


def best_p99_s(wire: Wire, bound_s: float) -> float:
    """The lowest of some rounds. A neighbour on this machine may spoil one round; a siege would spoil them all."""
    best_s = p99_s(wire)
    for _ in range(ROUNDS - 1):
        if best_s <= bound_s:
            break
        best_s = min(best_s, p99_s(wire))
    return best_s


@pytest.mark.timeout(180)
def test_a_siege_costs_nobody_else_anything(limited: Limited, record_property: Callable[[str, object], None]) -> None:
    connections = connections_allowed()
    assert connections >= 200, "the limit of open files is too low for any siege"
    server = limited([], {"headers_timeout_s": "20", "body_timeout_s": "20"})
    with closing(Client(server.url)) as client, wired(server.port) as wire:
        result_url = client.final(client.submit("tasks", {"plan": ["text:4000000"]}))["result_url"]
        quiet_s = min(p99_s(wire) for _ in range(2))
        bound_s = max(2 * quiet_s, quiet_s + FLOOR_S)
        quiet_mib = memory_mib(server)
        afterwards_mib = []
        for wave in range(WAVES):
            with siege(server, connections, SEED + wave, result_url):
                besieged_s = best_p99_s(wire, bound_s)
                held_mib = memory_mib(server) - quiet_mib
                assert besieged_s <= bound_s, f"p99 {besieged_s * 1000:.1f} ms under siege, {quiet_s * 1000:.1f} before"
                assert held_mib < GROWTH_MIB_MAX + connections * KIB_A_CONNECTION / 1024, f"{held_mib:.0f} MiB more"
            wait_until(lambda: open_connections(client) < 20, "the besiegers' connections to be given up", 30)
            afterwards_mib.append(memory_mib(server))
        record_property("connections", f"{connections} of {IDLE_WANTED} wanted")
        record_property("p99_ms", f"{quiet_s * 1000:.1f} before, {besieged_s * 1000:.1f} under siege")
        record_property("memory_mib", f"{quiet_mib:.0f}, +{held_mib:.0f} under siege, then {afterwards_mib}")
        # The first wave makes room that later ones use.
        first, last = afterwards_mib[1 : 1 + COMPARED], afterwards_mib[-COMPARED:]
        assert mean(last) - mean(first) < LEAK_MIB_MAX, afterwards_mib
        assert client.final(client.submit("tasks", {}))["status"] == "succeeded"
        assert len(client.get(result_url).content) > 4_000_000
    assert server.log_lines("request_failed") == []
