"""Settings: frozen once read, from arguments, COATCHECK_* variables and coatcheck.toml, the first that names a key.

A key nobody knows, a value that cannot hold and values that do not fit together are each refused with one sentence
that names the key and says what to write instead.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from coatcheck.core import limits
from coatcheck.setting_access import AccessSettings, access_fault
from coatcheck.setting_admission import AdmissionSettings
from coatcheck.setting_file import SettingsError, advice, read_file
from coatcheck.setting_server import ServerSettings
from coatcheck.setting_tenants import TenantSettings
from coatcheck.setting_values import (
    ALL_ROLES,
    ANSWERS,
    DURATION,
    GROUPS,
    SEEING,
    TESTING,
    WHERE,
    WORK,
    EventsUrl,
    ListenUrl,
    Roles,
    Seconds,
    SettingRow,
    StoreUrl,
    is_loopback,
    lease_fault,
    retry_after_fault,
    setting,
    sqlite_path,
    store_name,
    without_credentials,
)

ENV_PREFIX = "COATCHECK_"


class Settings(ServerSettings, AccessSettings, TenantSettings, AdmissionSettings, BaseSettings):
    """Everything that can be set. `Settings(port=9000)` reads the environment and the file for all that is not given.

    Args of the constructor: any setting by its name, and `config_file`, the path of the file to read
    (`coatcheck.toml` in the working directory if there is one).

    Raises:
        SettingsError: a key is unknown, or a value cannot hold.
    """

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, frozen=True, extra="forbid", env_ignore_empty=True)

    store: StoreUrl = setting(
        "sqlite:///coatcheck.db",
        WHERE,
        "sqlite:///relative/path, sqlite:////absolute/path or postgresql://host/database",
        "Where jobs are kept. A SQLite file is made when it is missing; its directory must be there, on a local disk. A"
        " PostgreSQL URL goes to the driver as it stands.",
    )
    postgres_connections: int = setting(
        4,
        WHERE,
        f"a whole number from 1 to {limits.STORE_CONNECTIONS_MAX}",
        "Connections to PostgreSQL that a process holds at most, the one that listens for hints not counted.",
        ge=1,
        le=limits.STORE_CONNECTIONS_MAX,
    )
    postgres_pooler: Literal["transaction"] | None = setting(
        None,
        WHERE,
        '"transaction" or left out',
        'Write "transaction" when a pooler such as PgBouncer in transaction mode stands before the database. Hints from'
        " other processes then need postgres_listen.",
        "transaction",
    )
    postgres_listen: ListenUrl | None = setting(
        None,
        WHERE,
        "postgresql://host/database, or off",
        "Where hints from other processes are listened for: the same database, reached without a pooler. Without it,"
        " where the store is, or nowhere behind a pooler; `off` leaves it to polling.",
        "postgresql://db.internal:5432/jobs",
    )
    migrate: bool = setting(
        True,
        WHERE,
        "true or false",
        "Whether a process that starts brings the store's schema up to date. With false an operator does it, with"
        " `coatcheck db upgrade`, and until then no process of this version starts.",
    )
    roles: Roles = setting(
        ALL_ROLES,
        WHERE,
        "one or more of api, worker, relay, upkeep",
        "What this process does. Processes with different roles share a store.",
    )
    events: EventsUrl | None = setting(
        None,
        WHERE,
        "file:PATH",
        "Where every change of a job is told as a CloudEvent, one JSON text a line. All processes of a store must agree"
        " on whether it is set.",
        "file:events.jsonl",
    )
    workers: int = setting(
        1,
        WORK,
        f"a whole number from 1 to {limits.RUNNERS_MAX}",
        "Runner processes, in which handlers run.",
        ge=1,
        le=limits.RUNNERS_MAX,
    )
    concurrency: int = setting(
        100,
        WORK,
        f"a whole number from 1 to {limits.RUNNER_CONCURRENCY_MAX}",
        "Attempts that run at once in each runner.",
        ge=1,
        le=limits.RUNNER_CONCURRENCY_MAX,
    )
    solo_runners: int = setting(
        2,
        WORK,
        f"a whole number from 1 to {limits.RUNNERS_MAX}",
        'Further processes that run one attempt each, for `runs_in="process"` and for jobs that must run alone.',
        ge=1,
        le=limits.RUNNERS_MAX,
    )
    lease_s: Seconds = setting(
        15.0,
        WORK,
        DURATION,
        "How long a worker that went silent keeps its jobs.",
        ge=limits.LEASE_S_MIN,
        le=limits.LEASE_S_MAX,
    )
    heartbeat_s: Seconds = setting(
        3.0,
        WORK,
        DURATION,
        "How often a worker says that it is alive; at most a third of lease_s. Running jobs see a cancellation then.",
        gt=0,
    )
    cancel_grace_s: Seconds = setting(
        30.0,
        WORK,
        DURATION,
        "How long a handler told to stop may go on before its job is recorded as cancelled without it.",
        ge=0,
        le=limits.GRACE_S_MAX,
    )
    grace_s: Seconds = setting(
        30.0,
        WORK,
        DURATION,
        "How long running jobs may finish when the process is told to stop; the rest are given back uncounted.",
        ge=0,
        le=limits.GRACE_S_MAX,
    )
    drain_delay_s: Seconds = setting(
        1.0,
        WORK,
        DURATION,
        "How long the server goes on answering 503 after it is told to stop, for load balancers to notice.",
        ge=0,
        le=600,
    )
    upkeep_interval_s: Seconds = setting(
        1.0, WORK, DURATION, "How often lost leases, deadlines and retention are looked at.", ge=0.05, le=60
    )
    inbox_interval_s: Seconds = setting(
        0.1, WORK, DURATION, "How often PostgreSQL is asked for work handed in within a transaction.", ge=0.01, le=60
    )
    wait_max_s: Seconds = setting(
        25.0, ANSWERS, DURATION, "The longest an answer to `Prefer: wait` is held.", ge=0, le=limits.WAIT_S_MAX
    )
    stream_comment_s: Seconds = setting(
        limits.STREAM_COMMENT_INTERVAL_S,
        ANSWERS,
        DURATION,
        "How often a silent stream sends a comment, so that nobody in between gives it up.",
        ge=0.05,
        le=600,
    )
    retry_after_min_s: int = setting(
        limits.RETRY_AFTER_S_MIN,
        ANSWERS,
        "whole seconds, at least 1",
        "The shortest `Retry-After` for a job that is not done, or for a place in a tenant's full queue. Other refusals"
        " have their own.",
        ge=1,
        le=3600,
    )
    retry_after_max_s: int = setting(
        limits.RETRY_AFTER_S_MAX,
        ANSWERS,
        "whole seconds, at least retry_after_min_s",
        "The longest `Retry-After` for a job that is not done, or for a place in a tenant's full queue. Other refusals"
        " have their own.",
        ge=1,
        le=3600,
    )
    log_format: Literal["auto", "json", "console"] = setting(
        "auto", SEEING, "auto, json or console", "How logs look; auto is console on a terminal and JSON elsewhere."
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", SEEING, "debug, info, warning or error", "The least severe log lines written."
    )
    metrics_port: int | None = setting(
        None,
        SEEING,
        "a whole number from 1 to 65535",
        "Where a process without the role api serves /livez, /readyz and /metrics; without it, nowhere.",
        9090,
        ge=0,
        le=65535,
    )
    crash_at: str | None = setting(
        None,
        TESTING,
        "a fault point and a count, such as before-commit:1 or before-commit:1:stop",
        "For tests: kill this process at a fault point, or stop it there as SIGSTOP does.",
        "before-commit:1",
        pattern=r"^[a-z0-9][a-z0-9-]*:[1-9][0-9]*(:stop)?$",
    )

    def __init__(self, **given: Any) -> None:
        _check_environment()
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise SettingsError(_sentence(error.errors()[0], given)) from None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        given = dict(init_settings())
        values = read_file(given.pop("config_file", None), list(settings_cls.model_fields))
        return InitSettingsSource(settings_cls, given), env_settings, InitSettingsSource(settings_cls, values)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        faults = (
            lease_fault(self.lease_s, self.heartbeat_s),
            _exposure_fault(self),
            access_fault(self),
            _tls_fault(self),
            retry_after_fault(self.retry_after_min_s, self.retry_after_max_s),
        )
        for fault in faults:
            if fault is not None:
                raise ValueError(fault)
        return self

    @property
    def store_path(self) -> Path | None:
        """The SQLite file that `store` names, if it names one."""
        return sqlite_path(self.store)

    @property
    def store_name(self) -> str:
        """What `store` names, without what gives access to it."""
        return store_name(self.store)

    @property
    def listen_dsn(self) -> str | None:
        """Where to listen for hints from other processes, if anywhere."""
        if self.postgres_listen is not None:
            return None if self.postgres_listen == "off" else self.postgres_listen
        return None if self.postgres_pooler is not None else self.store

    @property
    def events_path(self) -> Path | None:
        """The file that `events` names."""
        return None if self.events is None else Path(self.events.removeprefix("file:"))


def describe_settings() -> Sequence[SettingRow]:
    """One row for each setting, in the order of the default file."""
    rows = []
    for name, field in Settings.model_fields.items():
        extra = field.json_schema_extra
        if not isinstance(extra, dict) or field.description is None:
            raise TypeError(f"setting {name} is not described")
        form, group = str(extra["form"]), str(extra["group"])
        env = ENV_PREFIX + name.upper()
        is_secret = "is_secret" in extra
        rows.append(SettingRow(name, env, form, field.default, field.description, group, extra["example"], is_secret))
    return sorted(rows, key=lambda row: GROUPS.index(row.group))


def _exposure_fault(settings: Settings) -> str | None:
    if settings.auth or is_loopback(settings.host) or "api" not in settings.roles:
        return None
    return (
        f'host is {settings.host!r}, which other machines may reach without authentication; set auth, to "none" if'
        " that is meant, or listen on 127.0.0.1."
    )


def _tls_fault(settings: Settings) -> str | None:
    for name in ("tls_key", "tls_client_ca"):
        if getattr(settings, name) is not None and settings.tls_cert is None:
            return f"{name} is set without tls_cert; set tls_cert to the server's certificate, or remove {name}."
    return None


def _check_environment() -> None:
    known = {row.env for row in describe_settings()}
    for name in os.environ:
        if name.upper().startswith(ENV_PREFIX) and name.upper() not in known:
            raise SettingsError(f"The variable {name} is not a setting; {advice(name.upper(), sorted(known))}")


def _sentence(error: ErrorDetails, given: Mapping[str, Any]) -> str:
    if not error["loc"]:
        return str(error["ctx"]["error"])
    name = str(error["loc"][0])
    if name not in Settings.model_fields:
        return f"{name} is not a setting; {advice(name, list(Settings.model_fields))}"
    row = next(row for row in describe_settings() if row.name == name)
    where = row.env if name not in given and os.environ.get(row.env) else name
    value = "set" if row.is_secret else without_credentials(repr(error["input"]))
    return f"{where} is {value}, but it must be {row.type}."
