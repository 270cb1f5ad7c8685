"""`coatcheck dead-letters`: failed jobs, looked at and run again."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from coatcheck.cli.flags import with_settings
from coatcheck.cli.job_filters import BadOption, checked_id, with_filter
from coatcheck.cli.jobs import AsJson, Limit, Position, print_survey, show
from coatcheck.cli.loading import load_app_here
from coatcheck.cli.operator import STORE_SETTINGS, opened_rooms, operator
from coatcheck.cli.printing import print_json
from coatcheck.core import limits
from coatcheck.core.job import JobRecord
from coatcheck.operators.dead_letters import Found, Redriven
from coatcheck.settings import Settings
from coatcheck.store.operating import JobFilter, JobSurvey

OneJob = Annotated[str, typer.Argument(metavar="JOB_ID", help="The failed job.")]
App = Annotated[
    str | None,
    typer.Option("--app", help="Where the app is: a payload is checked against it.", metavar="MODULE:APP"),
]
NewPayload = Annotated[
    str | None,
    typer.Option("--payload", help="Run it with the JSON in this file instead; - reads it from stdin.", metavar="FILE"),
]
All = Annotated[bool, typer.Option("--all", help="All of them; needed where no filter is given.")]
Rate = Annotated[
    float, typer.Option("--rate", min=limits.REDRIVE_RATE_MIN, max=limits.REDRIVE_RATE_MAX, help="Jobs a second.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count them, name the oldest, and do nothing.")]

dead_letters = typer.Typer(help="Look at failed jobs that nobody has run again yet, and run them again.")

_COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())


def list_dead_letters(
    limit: Limit = limits.PAGE_SIZE_DEFAULT,
    after: Position = None,
    as_json: AsJson = False,
    *,
    wanted: JobFilter,
    settings: Settings,
) -> None:
    """List failed jobs that nobody has run again yet, newest first.

    Example:

      coatcheck dead-letters list --operation reports --category dependency_unavailable
    """
    print_survey(settings, JobSurvey(structs.replace(wanted, is_dead_letter=True), limit, after), as_json)


def redrive(job_id: OneJob, payload: NewPayload = None, app: App = None, *, settings: Settings) -> None:
    """Run a failed job again as a new job, and print the new job's id. Recorded effects are not repeated.

    Asking twice gives the same new job. It is not refused by the tenant's limits, but it counts towards them.

    Examples:

      coatcheck dead-letters redrive job_01jd3v6w8r9t0y1z2a3b4c5d6e7f

      coatcheck dead-letters redrive job_01jd3v6w8r9t0y1z2a3b4c5d6e7f --payload fixed.json --app bookshop:app
    """
    checked_id(job_id)
    if payload is not None and app is None:
        raise BadOption("A payload is checked against its operation; say with --app MODULE:APP where that is.")
    body = None if payload is None else _read(payload)
    typer.echo(asyncio.run(_redrive(settings, app, job_id, body)).id)


def redrive_many(
    is_all: All = False,
    rate: Rate = limits.REDRIVE_RATE_DEFAULT,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    *,
    wanted: JobFilter,
    settings: Settings,
) -> None:
    """Run many failed jobs again, oldest first, so many a second.

    Each is run again once: a run that was broken off is simply begun again. Jobs that fail again meanwhile are left.

    Examples:

      coatcheck dead-letters redrive-many --operation reports --category dependency_unavailable --dry-run

      coatcheck dead-letters redrive-many --operation reports --category dependency_unavailable --rate 20
    """
    if wanted == JobFilter() and not is_all:
        raise BadOption("Say which dead letters, by filters, or --all.")
    if dry_run:
        _print_found(asyncio.run(_count(settings, wanted)), as_json)
        return
    done = asyncio.run(_redrive_many(settings, wanted, rate))
    if as_json:
        print_json({"redriven": done.redriven, "left": done.left})
        return
    left = f"; {done.left} left, whose tenants are revoked" if done.left else ""
    typer.echo(f"{done.redriven} redriven{left}")


def _print_found(found: Found, as_json: bool) -> None:
    if as_json:
        print_json({"count": found.count, "first": list(found.first_ids)})
        return
    typer.echo(f"{found.count} would be redriven{'; the oldest are:' if found.first_ids else ''}")
    for job_id in found.first_ids:
        typer.echo(job_id)


def _read(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read(limits.PAYLOAD_READ_BYTES_MAX)
    try:
        with Path(name).open("rb") as file:
            return file.read(limits.PAYLOAD_READ_BYTES_MAX)
    except OSError as error:
        raise BadOption(f"{name} cannot be read: {error.strerror}.") from error


async def _redrive(settings: Settings, app_ref: str | None, job_id: str, payload: bytes | None) -> JobRecord:
    app = None if app_ref is None else load_app_here(app_ref)
    async with opened_rooms(settings, app) as rooms:
        return await rooms.dead_letters.redrive(job_id, payload, operator())


async def _count(settings: Settings, wanted: JobFilter) -> Found:
    async with opened_rooms(settings) as rooms:
        return await rooms.dead_letters.count(wanted)


async def _redrive_many(settings: Settings, wanted: JobFilter, rate: float) -> Redriven:
    terminal = Console(stderr=True)
    async with opened_rooms(settings) as rooms:
        now = rooms.clock.now()
        # What fails again meanwhile is a new job: it is not to come round again.
        until = now if wanted.created_until is None else min(now, wanted.created_until)
        meant = structs.replace(wanted, created_until=until)
        total = (await rooms.dead_letters.count(meant)).count if terminal.is_terminal else None
        with Progress(*_COLUMNS, console=terminal, transient=True, disable=not terminal.is_terminal) as progress:
            task = progress.add_task("Redriving", total=total)

            def show_progress(done: Redriven) -> None:
                progress.update(task, completed=done.redriven + done.left)

            survey_of_all = JobSurvey(meant, sys.maxsize)
            return await rooms.dead_letters.redrive_many(survey_of_all, rate, operator(), show_progress)


dead_letters.command("list")(with_settings(with_filter(list_dead_letters, has_status=False), STORE_SETTINGS))
dead_letters.command()(with_settings(show, STORE_SETTINGS))
dead_letters.command()(with_settings(redrive, STORE_SETTINGS))
dead_letters.command()(with_settings(with_filter(redrive_many, has_status=False), STORE_SETTINGS))
