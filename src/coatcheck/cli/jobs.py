"""`coatcheck jobs`: jobs of all tenants, for their operator."""

import asyncio
from typing import Annotated, Any

import typer

from coatcheck.cli.flags import with_settings
from coatcheck.cli.job_filters import BadOption, checked_id, with_filter
from coatcheck.cli.loading import load_app_here
from coatcheck.cli.operator import STORE_SETTINGS, opened_rooms, operator
from coatcheck.cli.printing import print_fields, print_json, print_rows, shown, shown_text
from coatcheck.completion.operator_view import operator_attempt_fields, operator_fields
from coatcheck.core import limits
from coatcheck.core.job import JobRecord
from coatcheck.operators.jobs import JobInFull
from coatcheck.settings import Settings
from coatcheck.store.operating import JobFilter, JobSurvey, SurveyPage

JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="The job.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=limits.JOBS_PRINTED_MAX, help="How many at most.")]
Position = Annotated[
    str | None, typer.Option("--after", help="Go on after this job, the last one that was listed.", metavar="JOB_ID")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Payload = Annotated[bool, typer.Option("--payload", help="Print what was handed in, and nothing else.")]
Reason = Annotated[
    str | None, typer.Option("--reason", help="Why, for the job's client to read.", metavar="TEXT", show_default=False)
]
App = Annotated[
    str, typer.Option("--app", help="Where the app is: it says how long cancelled jobs are kept.", metavar="MODULE:APP")
]

HEADINGS = ("id", "tenant", "operation", "status", "attempt", "created", "ended", "error")

jobs = typer.Typer(help="Look at jobs of all tenants, and cancel them.")


def list_jobs(
    limit: Limit = limits.PAGE_SIZE_DEFAULT,
    after: Position = None,
    as_json: AsJson = False,
    *,
    wanted: JobFilter,
    settings: Settings,
) -> None:
    """List jobs, newest first.

    Examples:

      coatcheck jobs list --tenant acme --status failed --finished-since 2h

      coatcheck jobs list --operation reports --limit 1000 --json
    """
    print_survey(settings, JobSurvey(wanted, limit, after), as_json)


def show(job_id: JobId, payload: Payload = False, as_json: AsJson = False, *, settings: Settings) -> None:
    """Show a job with its attempts, and with its errors as only operators see them.

    What was handed in is printed on request only; that it was read is written to the audit log.

    Examples:

      coatcheck jobs show job_01jd3v6w8r9t0y1z2a3b4c5d6e7f

      coatcheck dead-letters show job_01jd3v6w8r9t0y1z2a3b4c5d6e7f --payload
    """
    checked_id(job_id)
    if payload:
        _print_payload(asyncio.run(_payload(settings, job_id)))
        return
    print_job(asyncio.run(_show(settings, job_id)), as_json)


def cancel(app: App, job_id: JobId, reason: Reason = None, *, settings: Settings) -> None:
    """Cancel a job: at once if it waits; one that runs is told to stop. Repeating it is safe.

    Example:

      coatcheck jobs cancel job_01jd3v6w8r9t0y1z2a3b4c5d6e7f --app bookshop:app --reason "Ordered twice"
    """
    checked_id(job_id)
    if reason is not None and len(reason) > limits.CANCEL_REASON_CHARS_MAX:
        raise BadOption(f"--reason must have at most {limits.CANCEL_REASON_CHARS_MAX} characters.")
    job = asyncio.run(_cancel(settings, app, job_id, reason))
    typer.echo(f"{job.id} is {job.status}" if job.status.is_final else f"{job.id} runs and was told to stop")


def print_survey(settings: Settings, wanted: JobSurvey, as_json: bool) -> None:
    """Jobs up to the limit, as a table, as lines or as JSON. `position` is as the option gave it."""
    if wanted.position is not None:
        checked_id(wanted.position)
    page = asyncio.run(_survey(settings, wanted))
    if as_json:
        print_json({"jobs": [operator_fields(job) for job in page.jobs], "next": page.position})
        return
    print_rows(HEADINGS, [_row(job) for job in page.jobs])
    if page.position is not None:
        typer.echo(f"There are more; go on with --after {page.position}", err=True)


async def _survey(settings: Settings, wanted: JobSurvey) -> SurveyPage:
    """Jobs over as many pages as they take."""
    async with opened_rooms(settings) as rooms:
        found: list[JobRecord] = []
        position = wanted.position
        while True:
            size = min(wanted.limit - len(found), limits.PAGE_SIZE_MAX)
            page = await rooms.jobs.list(JobSurvey(wanted.filter, size, position))
            found += page.jobs
            position = page.position
            if position is None or len(found) >= wanted.limit:
                return SurveyPage(found, position)


def print_job(found: JobInFull, as_json: bool) -> None:
    """One job with its attempts."""
    fields = operator_fields(found.job)
    attempts = [operator_attempt_fields(attempt) for attempt in found.attempts]
    if as_json:
        print_json({**fields, "attempts": attempts})
        return
    error, progress = fields.pop("error"), fields.pop("progress")
    print_fields({name: _text(value) for name, value in fields.items()})
    if progress is not None:
        typer.echo(f"{'progress':<18}{_text(progress['fraction']) or ''} {shown(progress['message'] or '')}".rstrip())
    _print_error("error", error)
    for attempt in attempts:
        ended = f"{attempt['outcome']} {attempt['finished_at']}" if attempt["outcome"] else "running"
        typer.echo(f"\nattempt {attempt['number']:<10}started {attempt['started_at']}, {ended}")
        _print_error("  error", attempt["error"])


def _print_error(name: str, error: dict[str, Any] | None) -> None:
    if error is None:
        return
    code = f" ({shown(error['code'])})" if error["code"] else ""
    typer.echo(f"{name:<18}{error['category']}{code}: {shown(error['detail'])}")
    for line in shown_text(error["operator_detail"] or "").splitlines():
        typer.echo(f"    {line}")


def _print_payload(payload: bytes) -> None:
    """As it was handed in; on a terminal with nothing that would drive it."""
    out = typer.get_binary_stream("stdout")
    if out.isatty():
        typer.echo(shown_text(payload.decode("utf-8", "backslashreplace")))
    else:
        out.write(payload)


def _row(job: JobRecord) -> tuple[str, ...]:
    fields = operator_fields(job)
    error = "" if job.error is None else f"{job.error.category}: {job.error.detail}"
    attempt = f"{job.attempt}/{job.max_attempts}"
    return (
        *(job.id, job.tenant, job.operation, job.status.value, attempt),
        *(fields["created_at"], fields["finished_at"] or "", error),
    )


def _text(value: object) -> str | None:
    if value is None or value == "":
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _show(settings: Settings, job_id: str) -> JobInFull:
    async with opened_rooms(settings) as rooms:
        return await rooms.jobs.show(job_id)


async def _payload(settings: Settings, job_id: str) -> bytes:
    async with opened_rooms(settings) as rooms:
        return await rooms.jobs.read_payload(job_id, operator())


async def _cancel(settings: Settings, app_ref: str, job_id: str, reason: str | None) -> JobRecord:
    async with opened_rooms(settings, load_app_here(app_ref)) as rooms:
        return (await rooms.jobs.cancel(job_id, reason, operator())).job


jobs.command("list")(with_settings(with_filter(list_jobs, has_status=True), STORE_SETTINGS))
jobs.command()(with_settings(show, STORE_SETTINGS))
jobs.command()(with_settings(cancel, STORE_SETTINGS))
