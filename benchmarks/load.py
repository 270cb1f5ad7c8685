"""Load from wrk: one thread, keep-alive connections, each sending its next request when it has its answer."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.machine import Share
from benchmarks.places import SCRIPTS
from benchmarks.programs import BenchFailed, Program

CONNECTIONS = 64
_WARM_S = 1.0


@dataclass(frozen=True)
class Load:
    """One run. `foreign_cores`: what programs outside the measurement used."""

    rate: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    requests: int
    cpu_us: float
    foreign_cores: float


@dataclass(frozen=True)
class Target:
    """What is asked for, and the programs whose CPU time it costs."""

    url: str
    script: str
    arguments: Sequence[str]
    programs: Sequence[Program]
    connections: int = CONNECTIONS

    def with_arguments(self, *more: str) -> "Target":
        """The same with further arguments of the script."""
        return replace(self, arguments=[*self.arguments, *more])


def require_wrk() -> str:
    """The version of wrk.

    Raises:
        BenchFailed: it is not installed.
    """
    path = shutil.which("wrk")
    if path is None:
        raise BenchFailed("The load comes from wrk, which is not installed; on Debian and Ubuntu: apt-get install wrk")
    first_line = subprocess.run([path, "-v"], capture_output=True, text=True, check=False).stdout.splitlines()[0]
    return first_line.removeprefix("wrk ").split(" ")[0]


def drive(target: Target, seconds: float, warm_s: float = _WARM_S) -> Load:
    """Warm up, then measure for `seconds`.

    Raises:
        BenchFailed: any request failed.
    """
    if warm_s:
        _wrk(target, warm_s)
    share = Share(target.programs)
    share.begin()
    answer = _wrk(target, seconds)
    share.end()
    requests = answer["requests"]
    if answer["failed"] or not requests:
        raise BenchFailed(f"{answer['failed']} of {requests} requests to {target.url} failed.")
    return Load(
        rate=requests / answer["duration_us"] * 1e6,
        p50_ms=answer["p50_us"] / 1000,
        p99_ms=answer["p99_us"] / 1000,
        max_ms=answer["max_us"] / 1000,
        requests=int(requests),
        cpu_us=share.own_cpu_s / requests * 1e6,
        foreign_cores=share.foreign_cores,
    )


def _wrk(target: Target, seconds: float) -> dict[str, float]:
    script = str(SCRIPTS / target.script)
    options = ["-t1", f"-c{target.connections}", f"-d{max(1, round(seconds))}s", "--timeout", "10s", "-s", script]
    command = ["wrk", *options, target.url, "--", *target.arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 60)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise BenchFailed(f"wrk did not report on {target.url}: {done.stdout}{done.stderr}")
    answer: dict[str, float] = json.loads(lines[-1])
    return answer
