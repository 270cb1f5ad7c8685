"""`coatcheck redrive`: a failed job once more, as a new job."""

import asyncio
import secrets
from typing import Annotated, assert_never

import typer

from coatcheck.cli.loading import load_app_here
from coatcheck.cli.serve import AppRef
from coatcheck.core.ids import RANDOM_BITS, is_job_id, make_job_id
from coatcheck.core.job import JobRecord
from coatcheck.runtime import Runtime
from coatcheck.settings import Settings
from coatcheck.store.records import RedriveRefusal, Redriving

JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="The failed job.")]
Tenant = Annotated[str, typer.Option("--tenant", help="Whose job it is.", metavar="NAME")]


class RedriveRefused(Exception):
    """The job cannot be run again; the message says why in one sentence."""


def redrive(app_ref: AppRef, job_id: JobId, tenant: Tenant = "default", *, settings: Settings) -> None:
    """Run a failed job again as a new job, and print the new job's id. Recorded effects are not repeated.

    Asking twice gives the same new job.

    Example:

      coatcheck redrive bookshop:app job_01jd3v6w8r9t0y1z2a3b4c5d6e7f
    """
    if not is_job_id(job_id):
        raise RedriveRefused(f"{job_id!r} is no job id; it is the `id` in the job's JSON and the end of its URL.")
    runtime = Runtime(load_app_here(app_ref), settings, app_ref)
    answer = asyncio.run(runtime.redrive(_redriving(runtime, tenant, job_id)))
    match answer:
        case JobRecord():
            typer.echo(answer.id)
        case RedriveRefusal.NOT_FOUND:
            raise RedriveRefused(f"Tenant {tenant!r} has no job {job_id} in {settings.store_name}.")
        case RedriveRefusal.NOT_FAILED:
            raise RedriveRefused(f"The job {job_id} has not failed; only a failed job is run again.")
        case _:
            assert_never(answer)


def _redriving(runtime: Runtime, tenant: str, job_id: str) -> Redriving:
    now_us = runtime.clock.now_us()
    return Redriving(tenant, job_id, make_job_id(now_us, secrets.randbits(RANDOM_BITS)), now_us // 1000)
