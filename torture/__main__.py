"""`python -m torture`: the long tests, each part for itself or all in a row, at full length or scaled."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from coatcheck.store.clock import SystemClock
from torture import (
    database_restarts,
    dead_rows,
    disk_errors,
    old_snapshots,
    overload,
    power_cuts,
    properties,
    report,
    simulation,
    soak,
    stack_kills,
    store_kills,
)
from torture.machine import facts
from torture.outcome import Outcome, Run, Task

CLOCK = SystemClock()
CONSOLE = Console()


@dataclass(frozen=True)
class Part:
    """One part at full length. `unit` is what is counted."""

    run: Run
    full_amount: int
    unit: str


PARTS = {
    "store-kills": Part(store_kills.run, 20_000, "kills of a writer of the store"),
    "stack-kills": Part(stack_kills.run, 1_000, "kills of the whole service"),
    "database-restarts": Part(database_restarts.run, 20_000, "jobs while the database is restarted"),
    "old-snapshots": Part(old_snapshots.run, 60, "seconds in which a stranger's transaction stays open"),
    "dead-rows": Part(dead_rows.run, 600, "seconds of steady work on PostgreSQL"),
    "power-cuts": Part(power_cuts.run, 5_000, "losses of power"),
    "disk-errors": Part(disk_errors.run, 200, "calls that fail in four ways"),
    "simulation": Part(simulation.run, 5_000, "simulated lives"),
    "properties": Part(properties.run, 2_000, "examples of each property"),
    "overload": Part(overload.run, 60, "seconds at ten times the capacity"),
    "soak": Part(soak.run, 24 * 60, "seconds of a day in 24 minutes"),
}


def main(
    part: Annotated[list[str] | None, typer.Option(help=f"Only this: {', '.join(PARTS)}. May be repeated.")] = None,
    scale: Annotated[float, typer.Option(help="1 is the full length; 0.1 a tenth of it.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Where the random choices begin.")] = 1,
    keep: Annotated[bool, typer.Option(help="Write the figures into docs/test.")] = True,
) -> None:
    """Break things for a long time and report what broke for good. Ends with 1 if any promise was broken."""
    chosen = part or list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        raise typer.BadParameter(f"no part is called {unknown[0]}; there are {', '.join(PARTS)}")
    finished = _run_all(chosen, scale, seed)
    for each in finished:
        if keep:
            report.keep(each)
        _tell(each)
    if any(each.outcome.faults for each in finished):
        raise typer.Exit(1)


def _run_all(names: Sequence[str], scale: float, seed: int) -> list[report.Finished]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=CONSOLE) as progress:
        bars = {name: progress.add_task(name, total=_amount(name, scale), start=False) for name in names}
        return [_run_one(name, _amount(name, scale), seed, _mover(progress, bars[name])) for name in names]


def _mover(progress: Progress, bar: TaskID) -> Callable[[int], None]:
    def move(count: int) -> None:
        progress.start_task(bar)
        progress.advance(bar, count)

    return move


def _amount(name: str, scale: float) -> int:
    return max(1, round(PARTS[name].full_amount * scale))


def _run_one(name: str, amount: int, seed: int, advance: Callable[[int], None]) -> report.Finished:
    with tempfile.TemporaryDirectory(prefix=f"torture-{name}-") as folder:
        machine = facts(Path(folder))
        began_s = CLOCK.monotonic_s()
        try:
            outcome = PARTS[name].run(Task(amount, seed, Path(folder), advance))
        except Exception as error:
            CONSOLE.print_exception()
            outcome = Outcome(faults=[f"{type(error).__name__}: {error}"])
        seconds = CLOCK.monotonic_s() - began_s
    return report.Finished(name, amount, PARTS[name].full_amount, seed, seconds, machine, outcome)


def _tell(finished: report.Finished) -> None:
    unit = PARTS[finished.part].unit
    CONSOLE.print(f"[bold]{finished.part}[/bold]: {finished.amount:,} {unit} in {finished.seconds:,.0f} s")
    for name, value in finished.outcome.figures.items():
        CONSOLE.print(f"  {name}: {value}", highlight=False)
    for fault in finished.outcome.faults:
        CONSOLE.print(f"  [red]{escape(fault)}[/red]", highlight=False)


if __name__ == "__main__":
    typer.run(main)
