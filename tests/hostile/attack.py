"""A siege in a process of its own: `python -m hostile.attack PORT CONNECTIONS SEED RESULT_URL`, until its input ends.

It holds connections that are idle, halfway through a request, or stuck in their answer, feeds slow ones a byte at a
time, and meanwhile sends whatever a server may choke on, some of it broken off anywhere. It says when all is in place.
"""

import contextlib
import random
import select
import socket
import sys
from collections.abc import Callable

from hostile.wire import JSON, get, post, post_in_chunks, request

STUCK = 12
SLOW = 60
TURN_S = 0.02
PATIENCE_S = 5.0
HALVES = [
    b"",
    b"G",
    b"GET /livez HTTP/1.1\r\nHost: a\r\n",
    b"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{",
    post_in_chunks("/v1/tasks", b"5\r\n{"),
    b"\r\n\r\n",
]
BLOWS = [
    b"NONSENSE\r\n\r\n",
    b"\x16\x03\x01" + bytes(200),
    get("/" + "a" * 60_000),
    get("/livez", "X: " + "x" * 60_000),
    get("/livez", *(f"X-{number}: y" for number in range(5000))),
    post("/v1/anything", b"[" * 20_000 + b"]" * 20_000),
    post("/v1/anything", b"[" * 500_000),
    post("/v1/anything", b'{"a":' * 100_000),
    post("/v1/anything", b'"\xff\xfe\xed\xa0\x80"'),
    post("/v1/anything", b'"' + b"\\ud800" * 9000 + b'"'),
    post("/v1/anything", b"1" * 60_000),
    post("/v1/anything", b'{"a": 1, "a": 2}'),
    post("/v1/tasks", b'{"plan": ["' + b"x" * 3_000_000 + b'"]}'),
    request("POST", "/v1/tasks", ("Content-Length: 99999999999",)),
    request("POST", "/v1/tasks", ("Content-Length: 2", "Transfer-Encoding: chunked")) + b"0\r\n\r\n",
    request("POST", "/v1/tasks", ("Transfer-Encoding: gzip, chunked",)) + b"0\r\n\r\n",
    post_in_chunks("/v1/tasks", b"ffffffffffffffff\r\n"),
    post_in_chunks("/v1/anything", b"1\r\n1\r\n0\r\n" + b"T: x\r\n" * 9000),
    post("/v1/anything", b"1", "Prefer: wait=1" + ";  " * 200 + "="),
    post("/v1/anything", b"1", "Idempotency-Key: a\rb\nc\x00"),
    get("/v1/jobs?limit=" + "9" * 3000),
    get("/livez") * 300,
    b"POST /v1/tasks HTTP/1.1\r\nHost: a\r\n" + JSON + b"Content-Length: 7\r\nContent-Length: 8\r\n\r\n",
]


class Siege:
    """All connections of the attacker."""

    def __init__(self, port: int, seed: int, result_url: str) -> None:
        self._port = port
        self._dice = random.Random(seed)  # noqa: S311 - the same dice in every run
        self._result_url = result_url
        self._held: list[socket.socket] = []
        self._slow: list[socket.socket] = []

    def lay(self, connections: int) -> None:
        """Take up the connections that are held."""
        for number in range(connections):
            self._held.append(self._connect(HALVES[number % len(HALVES)]))
        for _ in range(SLOW):
            self._slow.append(self._connect(self._dice.choice(HALVES[2:5])))
        for _ in range(STUCK):
            self._held.append(self._connect(get(self._result_url), buffer_bytes=4096))

    def turn(self) -> None:
        """One blow, one more byte from a few of the slow, and a new connection for one that was cut off."""
        whole = self._dice.choice(BLOWS)
        blow = whole if self._dice.random() < 0.5 else whole[: self._dice.randrange(len(whole))]
        with contextlib.suppress(OSError):
            plug = self._connect(blow)
            if self._dice.random() < 0.5:
                plug.settimeout(TURN_S)
                plug.recv(1)
            plug.close()
        for place in self._dice.sample(range(SLOW), 5):
            try:
                self._slow[place].send(b"x")
            except OSError:
                self._slow[place] = self._connect(self._dice.choice(HALVES[2:5]))

    def _connect(self, first_words: bytes, buffer_bytes: int | None = None) -> socket.socket:
        plug = socket.socket()
        if buffer_bytes is not None:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        plug.settimeout(PATIENCE_S)
        plug.connect(("127.0.0.1", self._port))
        with contextlib.suppress(OSError):
            plug.sendall(first_words)
        return plug


def besiege(siege: Siege, connections: int, say: Callable[[str], object]) -> None:
    """Attack until the input ends."""
    siege.lay(connections)
    say("laid\n")
    while not select.select([sys.stdin], [], [], TURN_S)[0]:
        siege.turn()
    say("lifted\n")


def say(word: str) -> None:
    sys.stdout.write(word)
    sys.stdout.flush()


if __name__ == "__main__":
    port, connections, seed, result_url = sys.argv[1:]
    besiege(Siege(int(port), int(seed), result_url), int(connections), say)
