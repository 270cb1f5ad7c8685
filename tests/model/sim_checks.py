"""What must hold when a story has come to rest: the promises, by the one checker, and what only virtual time shows."""

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from coatcheck.core.limits import CRASHES_MAX
from coatcheck.store.clock import SLOWNESS
from coatcheck.testing.checker import check
from coatcheck.testing.checker_evidence import Evidence, Rules, read_events

from .sim_app import LEASE_S, QUEUE_LIMIT_S, SCARCE_MAX
from .sim_client import Wish
from .sim_record import Record

HASTE = 1 + 1 / SLOWNESS
SLACK_S = 0.6
OPEN_TABLES = ("ready", "scheduled", "lease", "turn", "deadline", "outbox")
RULES = Rules(concurrency_max={"scarce": SCARCE_MAX}, company_losses_max=CRASHES_MAX)


class Timeline:
    """Which virtual second a stored instant was."""

    def __init__(self) -> None:
        self._told_ms: list[int] = []
        self._seconds: list[float] = []

    def note(self, told_ms: int, second: float) -> None:
        self._told_ms.append(told_ms)
        self._seconds.append(second)

    def second(self, told_ms: int) -> float:
        """The second of the first note that is not before it."""
        at = bisect_left(self._told_ms, told_ms)
        return self._seconds[min(at, len(self._seconds) - 1)]


class EndChecks:
    """Run once, at the end. Everything found is blamed on the record."""

    def __init__(self, path: Path, events_path: Path, record: Record, timeline: Timeline) -> None:
        self._record = record
        self._timeline = timeline
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self._open_rows = {name: _rows(connection, f"SELECT * FROM {name}") for name in OPEN_TABLES}  # noqa: S608 - fixed
        self._jobs = {row["id"]: row for row in _rows(connection, "SELECT * FROM job")}
        self._attempts = _rows(connection, "SELECT * FROM attempt ORDER BY job_id, number")
        self._integrity = connection.execute("PRAGMA integrity_check").get
        connection.close()
        self._events = read_events(events_path)

    def run(self, wishes: Sequence[Wish]) -> None:
        self._check(self._integrity == "ok", f"integrity: {self._integrity}")
        for violation in check(self._evidence(), RULES):
            self._record.blame(str(violation))
        for wish in wishes:
            self._check_wish(wish)
        for job in self._jobs.values():
            self._check_job(job)
        self._check_rescues()

    def _evidence(self) -> Evidence:
        record = self._record
        return Evidence(
            calls=record.calls,
            runs=[start.as_run() for start in record.starts],
            effects=record.effects,
            events=self._events,
            leftovers={name: len(rows) for name, rows in self._open_rows.items()},
            healed_ms=(),
        )

    def _check(self, holds: bool, fault: str) -> None:
        if not holds:
            self._record.blame(fault)

    def _check_wish(self, wish: Wish) -> None:
        """Nothing started before its time, counted by a clock that nobody can set."""
        for job_id in sorted(wish.job_ids & self._record.accepted_s.keys()):
            began = [start.began_s for start in self._record.starts if start.job_id == job_id]
            waited_s = min(began, default=float("inf")) - self._record.accepted_s[job_id]
            fault = f"{job_id} started {waited_s:.1f} s after its acceptance, not {wish.delay_s}"
            self._check(waited_s >= wish.delay_s / HASTE - SLACK_S, fault)

    def _check_job(self, job: dict[str, Any]) -> None:
        """Counted starts stay within bounds, and nothing failed before its time."""
        job_id, accepted_s = job["id"], self._record.accepted_s.get(job["id"])
        self._check(job["counted_attempts"] <= job["max_attempts"], f"{job_id} started too often")
        if job["error_code"] == "queue-limit" and accepted_s is not None:
            waited_s = self._timeline.second(job["finished_at"]) - accepted_s
            limit_s = QUEUE_LIMIT_S / HASTE - SLACK_S
            self._check(waited_s >= limit_s, f"{job_id} failed over the queue limit after {waited_s:.1f} s")

    def _check_rescues(self) -> None:
        """Only leases that showed no life for their time were taken back."""
        for row in self._attempts:
            attempt = (row["job_id"], row["number"])
            kept_s = self._record.kept_s.get(attempt)
            if row["outcome"] == "worker_lost" and attempt not in self._record.endings and kept_s is not None:
                silent_s = self._timeline.second(row["finished_at"]) - kept_s
                self._check(silent_s >= LEASE_S - SLACK_S, f"{attempt} was taken back after {silent_s:.1f} s")


def _rows(connection: apsw.Connection, statement: str) -> list[dict[str, Any]]:
    cursor = connection.execute(statement)
    rows = cursor.fetchall()
    if not rows:
        return []
    names = [column[0] for column in connection.execute(statement).get_description()]
    return [dict(zip(names, row, strict=True)) for row in rows]
