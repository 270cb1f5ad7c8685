"""Job and BlockingJob: what a handler can know of its attempt and do for it, with the same names in both colours."""

import asyncio
import hashlib
import inspect
import math
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Protocol, TypeVar, overload

from structlog.stdlib import BoundLogger

from coatcheck.core import limits
from coatcheck.core.costs import DEFAULT_KIND, check_kind, millionths
from coatcheck.core.job import InstantMs, Progress
from coatcheck.execution.recorded import check_effect_name, decode_effect, encode_effect
from coatcheck.execution.texts import clean_line
from coatcheck.observe.logs import get_logger
from coatcheck.store.clock import Clock

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What an attempt knows of its job."""

    id: str
    attempt: int
    chain_id: str
    tenant: str
    operation: str
    correlation_id: str
    deadline_at: InstantMs | None


class JobLine(Protocol):
    """How a job reaches the control side. All but what is awaited may be called from any thread."""

    @property
    def clock(self) -> Clock: ...

    @property
    def is_stopped(self) -> bool: ...

    def report_progress(self, progress: Progress) -> None: ...

    async def ask_effect(self, name: str, value: bytes | None) -> bytes | None: ...

    def call_effect(self, name: str, value: bytes | None) -> bytes | None: ...

    async def ask_spend(self, kind: str, units: float) -> float | None: ...

    def call_spend(self, kind: str, units: float) -> float | None: ...


class RunningJob:
    """The part that is the same for `async def` and `def` handlers."""

    def __init__(self, facts: JobFacts, line: JobLine) -> None:
        self.id = facts.id
        self.attempt = facts.attempt
        self.tenant = facts.tenant
        self.operation = facts.operation
        self.correlation_id = facts.correlation_id
        self._facts = facts
        self._line = line
        self._effects: dict[str, bytes] = {}
        self._kinds: set[str] = set()

    @cached_property
    def log(self) -> BoundLogger:
        """A structlog logger that names the job, its attempt, tenant, operation and correlation id in every line."""
        return get_logger("job").bind(
            job=self.id,
            attempt=self.attempt,
            tenant=self.tenant,
            operation=self.operation,
            correlation_id=self.correlation_id,
        )

    @property
    def deadline(self) -> datetime | None:
        """When the job must be done, in UTC; None: no deadline."""
        at = self._facts.deadline_at
        return None if at is None else datetime.fromtimestamp(at / 1000, UTC)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline, never below 0; None: no deadline."""
        at = self._facts.deadline_at
        return None if at is None else max(0.0, (at - self._line.clock.now()) / 1000)

    @property
    def cancelled(self) -> bool:
        """Whether the attempt was told to stop: its job was cancelled, its time is up or its worker goes away."""
        return self._line.is_stopped

    def progress(self, done: float | None = None, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the work is; never blocks or fails, and may be called as often as you like.

        Args:
            done: units done of `total`; without `total` the fraction itself, from 0 to 1.
            total: all units.
            message: a short line for the client, cut to 200 characters.
        """
        text = None if message is None else clean_line(str(message), limits.PROGRESS_MESSAGE_CHARS_MAX)
        self._line.report_progress(Progress(_fraction(done, total), text))

    def effect_key(self, name: str) -> str:
        """A key for somebody else's API: the same in every attempt of this job and in every redrive of it.

        Raises:
            ValueError: the name is not 1 to 128 printable characters.
        """
        check_effect_name(name)
        return hashlib.sha256(f"{self._facts.chain_id}\n{name}".encode()).hexdigest()

    def _check_spend(self, units: float, kind: str) -> None:
        millionths(units)
        self._kinds.add(check_kind(kind))
        if len(self._kinds) > limits.KINDS_MAX:
            raise ValueError(f"A job may spend units of {limits.KINDS_MAX} kinds; {kind!r} is one more.")

    @property
    def _may_be_recorded(self) -> bool:
        return self.attempt > 1 or self._facts.chain_id != self.id


class Job(RunningJob):
    """The job in an `async def` handler."""

    def __init__(self, facts: JobFacts, line: JobLine) -> None:
        super().__init__(facts, line)
        self._locks: dict[str, asyncio.Lock] = {}

    @overload
    async def effect(self, name: str, fn: Callable[[], Awaitable[T]], returns: type[T]) -> T: ...
    @overload
    async def effect(self, name: str, fn: Callable[[], T], returns: type[T]) -> T: ...
    @overload
    async def effect(self, name: str, fn: Callable[[], Any], returns: Any = None) -> Any: ...
    async def effect(self, name: str, fn: Callable[[], Any], returns: Any = None) -> Any:
        """Do something once for this job and every redrive of it, and return what it returned.

        The value is recorded as JSON; what is returned is always that JSON read back, as `returns` if it is given, so
        that a later attempt sees the same. If the process dies between doing and recording, it is done again.

        Args:
            name: names the effect in its job, 1 to 128 printable characters.
            fn: does it; may be `def` or `async def`.
            returns: the type of the value, anything Pydantic takes.

        Raises:
            ValueError: the name is wrong, or the value is no JSON or larger than 256 KiB.
            asyncio.CancelledError: the attempt has lost its right to write and must stop.
        """
        check_effect_name(name)
        async with self._locks.setdefault(name, asyncio.Lock()):
            recorded = self._effects.get(name)
            if recorded is None and self._may_be_recorded:
                recorded = await self._line.ask_effect(name, None)
            if recorded is None:
                value = fn()
                if inspect.isawaitable(value):
                    value = await value
                recorded = await self._line.ask_effect(name, encode_effect(value, returns))
            self._effects[name] = stands = recorded or b"null"
        return decode_effect(stands, returns)

    async def spend(self, units: float = 1, kind: str = DEFAULT_KIND) -> float | None:
        """Count units that this job spends, and return how many are left to it; None: nothing bounds them.

        They are durable when it returns, and count for the job in all its attempts and for its tenant's budget. A job
        that has spent more than it may is stopped, and fails with `limit_exceeded`.

        Args:
            units: 0 to 1,000,000,000, kept in millionths.
            kind: of what; lower-case letters, digits, `-` and `_`, beginning with a letter, at most 32.

        Raises:
            ValueError: the units or the kind are wrong, or it is the ninth kind of this job.
            asyncio.CancelledError: the job has spent more than it may, or the attempt has lost its right to write.
        """
        self._check_spend(units, kind)
        return await self._line.ask_spend(kind, units)


class BlockingJob(RunningJob):
    """The job in a `def` handler: the same names, called instead of awaited."""

    def __init__(self, facts: JobFacts, line: JobLine) -> None:
        super().__init__(facts, line)
        self._locks: dict[str, threading.Lock] = {}

    @overload
    def effect(self, name: str, fn: Callable[[], T], returns: type[T]) -> T: ...
    @overload
    def effect(self, name: str, fn: Callable[[], Any], returns: Any = None) -> Any: ...
    def effect(self, name: str, fn: Callable[[], Any], returns: Any = None) -> Any:
        """Do something once for this job and every redrive of it, as `Job.effect`; `fn` must be `def`."""
        check_effect_name(name)
        with self._locks.setdefault(name, threading.Lock()):
            recorded = self._effects.get(name)
            if recorded is None and self._may_be_recorded:
                recorded = self._line.call_effect(name, None)
            if recorded is None:
                recorded = self._line.call_effect(name, encode_effect(fn(), returns))
            self._effects[name] = stands = recorded or b"null"
        return decode_effect(stands, returns)

    def spend(self, units: float = 1, kind: str = DEFAULT_KIND) -> float | None:
        """Count units that this job spends, as `Job.spend`."""
        self._check_spend(units, kind)
        return self._line.call_spend(kind, units)


def _fraction(done: float | None, total: float | None) -> float | None:
    if done is None:
        return None
    try:
        fraction = float(done) if total is None else float(done) / float(total)
    except ZeroDivisionError:
        return 1.0
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(fraction) else min(max(fraction, 0.0), 1.0)
