"""`python -m benchmarks`: prepare what is needed, measure, print one table, keep the result."""

import argparse
import sys
from collections.abc import Callable, Sequence

from rich.console import Console

from benchmarks import accept, admission, depth, duel, end_to_end, postgres, postgres_depth, status
from benchmarks.load import require_wrk
from benchmarks.machine import facts
from benchmarks.places import RUN
from benchmarks.programs import BenchFailed
from benchmarks.results import describe, keep, our_versions
from benchmarks.rows import Plan, Row
from benchmarks.table import print_table

Versions = dict[str, str]
PARTS: dict[str, Callable[[Plan, Versions], list[Row]]] = {
    "accept": lambda plan, _: accept.measure(plan),
    "admission": lambda plan, _: admission.measure(plan),
    "status": lambda plan, _: status.measure(plan),
    "end-to-end": lambda plan, _: end_to_end.measure(plan),
    "postgres": lambda plan, _: postgres.measure(plan),
    "depth": lambda plan, _: depth.measure(plan),
    "postgres-depth": lambda plan, _: postgres_depth.measure(plan),
    "peers": duel.measure,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 when everything was measured, whatever the figures say."""
    options = _parser().parse_args(arguments)
    console = Console(stderr=True, highlight=False)
    try:
        _run(options, lambda words: console.print(f"[dim]… {words}[/dim]"))
    except BenchFailed as error:
        console.print(str(error), style="red", markup=False)
        return 1
    return 0


def _run(options: argparse.Namespace, tell: Callable[[str], None]) -> None:
    versions = {"wrk": require_wrk()} | our_versions()
    RUN.mkdir(parents=True, exist_ok=True)
    machine = facts(RUN)
    plan = Plan(options.seconds, options.rounds, options.depth, options.peers, tell)
    rows = [row for part in options.parts for row in PARTS[part](plan, versions)]
    result = describe(rows, machine, versions)
    print_table(rows, result)
    if options.keep:
        tell(f"kept as {keep(result)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"what to measure: {', '.join(PARTS)} (all)")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each run (6)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of which the median is taken (3)")
    parser.add_argument("--depth", type=int, default=1_000_000, help="queued and finished jobs on file (1000000)")
    parser.add_argument("--peers", default="", help="only peers whose name holds this word, beside ours")
    parser.add_argument("--no-keep", dest="keep", action="store_false", help="do not write benchmarks/results/")
    return parser


if __name__ == "__main__":
    sys.exit(main())
