"""What authentication and admission cost: accepting with both switched off and on, in neighbouring runs.

On means: each request shows an API key and is counted against rates of its tenant and of all, none of
which it reaches, and against the depth and age of the queue.
"""

import subprocess
import sys

from benchmarks.accept import details, post
from benchmarks.asking import ask
from benchmarks.load import Load, drive
from benchmarks.places import ROOT
from benchmarks.programs import BenchFailed, clean_environment
from benchmarks.rows import Plan, Row, at_least, foreign, median_of, paired_ratio
from benchmarks.seeding import fresh_folder
from benchmarks.servers import BODY, PATH, Serving, coatcheck

SECTION = "authentication and admission, 64 connections"
_PROMISED_SHARE = 0.85
_UNREACHED = "1000000"
_LIMITS = (
    "tenant-submit-rate",
    "tenant-submit-burst",
    "tenant-read-rate",
    "tenant-read-burst",
    "submit-rate",
    "submit-burst",
    "queue-depth-max",
    "queue-age-max",
)


def measure(plan: Plan) -> list[Row]:
    """A row for each, the one with both on beside the other."""
    off: list[Load] = []
    on: list[Load] = []
    for number in range(plan.rounds):
        plan.tell(f"admission: round {number + 1} of {plan.rounds}")
        off.append(_measure(plan, with_limits=False))
        on.append(_measure(plan, with_limits=True))
    return [_on_row(on, off), _off_row(off)]


def _measure(plan: Plan, with_limits: bool) -> Load:
    folder = fresh_folder("admission")
    limits = [text for name in _LIMITS for text in (f"--{name}", _UNREACHED)]
    options = ["--auth", "keys", *limits] if with_limits else []
    with coatcheck(folder / "store.db", "--roles", "api", *options) as serving:
        target = post(serving, "key")
        if not with_limits:
            return drive(target, plan.seconds)
        return drive(target.with_arguments(_key_of_tenant(serving)), plan.seconds)


def _key_of_tenant(serving: Serving) -> str:
    """A key that the server takes, of a tenant made for it."""
    _operate(serving, "tenants", "add", "bench")
    key = _operate(serving, "keys", "create", "bench")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    answer = ask(serving.port, "POST", PATH, headers, BODY)
    if answer.status != 202:
        raise BenchFailed(f"The server answered a good key with {answer.status}.")
    return key


def _operate(serving: Serving, *command: str) -> str:
    store = f"sqlite:///{serving.folder / 'store.db'}"
    done = subprocess.run(
        [sys.executable, "-m", "coatcheck", *command, "--store", store],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment() | {"PYTHONPATH": str(ROOT / "src")},
        timeout=60,
    )
    if done.returncode:
        raise BenchFailed(f"coatcheck {' '.join(command)} failed: {done.stderr}")
    return done.stdout.strip()


def _on_row(on: list[Load], off: list[Load]) -> Row:
    ratio = paired_ratio(on, off)
    return Row(
        SECTION,
        "accept, both on: a key, rates, depth and age",
        median_of(on, lambda load: load.rate),
        "/s",
        [load.rate for load in on],
        beside=median_of(off, lambda load: load.rate),
        beside_name="both off",
        ratio=ratio,
        verdict=at_least(_PROMISED_SHARE, ratio, f"{_PROMISED_SHARE:.0%}"),
        foreign_cores=foreign(on, off),
        extra=details(on),
    )


def _off_row(off: list[Load]) -> Row:
    rates = [load.rate for load in off]
    rate = median_of(off, lambda load: load.rate)
    return Row(SECTION, "accept, both off", rate, "/s", rates, foreign_cores=foreign(off), extra=details(off))
