"""Handing in work within a transaction of your own, on PostgreSQL, by whatever runs your statements.

For Django, SQLAlchemy, psycopg and everything else that `Service.submit(..., connection=...)` does not take. Needs no
driver, no connection and no running service: `submission` checks the work and gives the one statement to run.
"""

import secrets
from dataclasses import dataclass
from typing import Any, Literal, Unpack

from coatcheck.acceptance.submissions import submission_of
from coatcheck.admission.admit import require_time_left
from coatcheck.admission.calls import SubmitOptions, admit_call
from coatcheck.admission.identity import DEFAULT_TENANT
from coatcheck.app import App
from coatcheck.core.ids import RANDOM_BITS, make_job_id
from coatcheck.service import Service
from coatcheck.store.clock import SystemClock
from coatcheck.stores.postgres.placeholders import with_percent_s
from coatcheck.stores.postgres.rows import inbox_values
from coatcheck.stores.postgres.statements import sql

_clock = SystemClock()


@dataclass(frozen=True, slots=True)
class HandIn:
    """One INSERT and its parameters, which make the job `job_id` once they are committed.

    The same hand-in may be run again where nobody knows whether a commit happened: it stays one job.
    """

    job_id: str
    statement: str
    parameters: tuple[Any, ...]


def submission(
    owner: App | Service,
    operation: str,
    request: Any,
    paramstyle: Literal["%s", "$1"] = "%s",
    **options: Unpack[SubmitOptions],
) -> HandIn:
    """Check work and give the statement that hands it in. Nothing is sent anywhere.

        work = submission(app, "reports", {"branch": "leeds"})
        cursor.execute(work.statement, work.parameters)                             # psycopg, Django
        session.connection().exec_driver_sql(work.statement, work.parameters)      # SQLAlchemy on psycopg

    and, with `paramstyle="$1"`, for asyncpg and for SQLAlchemy on it:

        await connection.execute(work.statement, *work.parameters)
        await session_connection.exec_driver_sql(work.statement, work.parameters)

    An idempotency key is compared when the job is moved into the queue: if it is another job's by then, this one ends
    failed and names the other.

    Args:
        owner: the app, or the service that serves it.
        operation: its name.
        request: as in Service.submit.
        paramstyle: how the statement names its parameters.

    Raises:
        Refused: with the problem code a client would be answered with.
        KeyError: there is no such operation.
    """
    app = owner.app if isinstance(owner, Service) else owner
    declared = app.operations[operation]
    now_us = _clock.now_us()
    admitted = admit_call(declared, request, options, now_us // 1000)
    require_time_left(admitted)
    # Bits of its own for each call: unlike a service, this may be called from any thread, and after a fork.
    job_id = make_job_id(now_us, secrets.randbits(RANDOM_BITS))
    made = submission_of(declared, admitted, options.get("tenant", DEFAULT_TENANT), job_id, now_us)
    statement = sql("hand_in")
    return HandIn(job_id, statement if paramstyle == "$1" else with_percent_s(statement), tuple(inbox_values(made)))
