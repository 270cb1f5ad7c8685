"""The two HTTP servers that are compared: `coatcheck serve`, and a bare one of the same kind."""

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.asking import Answer, answers, ask
from benchmarks.places import ROOT
from benchmarks.programs import Command, Program, free_port

PATH = "/v1/reports"
BODY = b'{"branch":"north-hall","shelves":42,"tags":["quarterly","draft"]}'
_HOP_HEADERS = frozenset({"date", "connection"})


@dataclass(frozen=True)
class Serving:
    """A server that answers at `url`."""

    program: Program
    port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"


def coatcheck(store: Path, *options: str) -> contextlib.AbstractContextManager[Serving]:
    """`coatcheck serve` on a file."""
    return coatcheck_on(f"sqlite:///{store}", store.parent, *options)


@contextlib.contextmanager
def coatcheck_on(store_url: str, folder: Path, *options: str) -> Iterator[Serving]:
    """`coatcheck serve` on a store, working in this folder."""
    port = free_port()
    # A process without an API shows its health where it shows its metrics.
    ports = ["--port", str(port), "--metrics-port", str(port)]
    arguments = ["benchmarks.app:app", "--store", store_url, *ports, "--drain-delay", "0", "--grace", "1"]
    command = Command(
        [sys.executable, "-m", "coatcheck", "serve", *arguments, *options],
        folder,
        {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )
    with _served(command, f"coatcheck-{port}", port) as serving:
        yield serving


@contextlib.contextmanager
def bare(answer: Answer, folder: Path) -> Iterator[Serving]:
    """A server that always gives this answer."""
    headers = [(name, value) for name, value in answer.headers if name.lower() not in _HOP_HEADERS]
    constant = folder / "bare.json"
    fields = {"status": answer.status, "headers": headers, "body": answer.body.decode("utf-8")}
    constant.write_text(json.dumps(fields), "utf-8")
    port = free_port()
    options = ["--http", "httptools", "--loop", "uvloop", "--lifespan", "off", "--log-level", "warning"]
    lean = ["--no-access-log", "--no-server-header", "--no-proxy-headers", "--port", str(port)]
    command = Command(
        [sys.executable, "-m", "uvicorn", "benchmarks.bare:app", *options, *lean],
        folder,
        {"PYTHONPATH": str(ROOT), "BENCH_BARE": str(constant)},
    )
    with _served(command, "bare", port) as serving:
        yield serving


@contextlib.contextmanager
def _served(command: Command, name: str, port: int) -> Iterator[Serving]:
    program = Program(command, name)
    try:
        program.wait_until(lambda: answers(port, "/livez"), "answer")
        yield Serving(program, port, command.folder)
    finally:
        program.stop()


def submit(port: int, key: str | None = None) -> Answer:
    """Hand in one report."""
    headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
    return ask(port, "POST", PATH, headers, BODY)
