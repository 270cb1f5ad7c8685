"""What a checker knows: the lines of all participants put together as calls, runs, effects, events and the dump.

Nothing is decided here. A call whose end is missing ended `unknown`; a run whose end is missing was killed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from coatcheck.testing.history import Entry, Mark, read_history
from coatcheck.testing.history_client import JsonObject, Verb
from coatcheck.testing.history_runs import EFFECT, RUN

DUMP = "dump"
"""Who the participant is that dumps everything at rest."""

HEALED = "healed"
"""What the line says that whoever repairs faults writes, when nothing is broken any more."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one client. Instants in µs are monotonic, `wall_ms` is when it was answered. `jobs` it was shown."""

    who: str
    verb: str
    tenant: str
    began_us: int
    correlation_id: str
    mark: Mark = Mark.UNKNOWN
    ended_us: int | None = None
    wall_ms: int | None = None
    operation: str | None = None
    job_id: str | None = None
    key: str | None = None
    digest: str | None = None
    listed_status: str = ""
    http_status: int | None = None
    code: str | None = None
    jobs: Sequence[JsonObject] = ()
    attempts: Sequence[JsonObject] = ()

    def __str__(self) -> str:
        return f"{self.verb} {self.correlation_id} ({self.http_status or 'no answer'})"


@dataclass(frozen=True, slots=True)
class Sighting:
    """A client saw this representation between these two moments."""

    job: JsonObject
    tenant: str
    began_us: int
    ended_us: int


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt as its handler tells it. `mark` is UNKNOWN where it was killed."""

    job_id: str
    attempt: int
    began_us: int
    mark: Mark = Mark.UNKNOWN
    ended_us: int | None = None


@dataclass(frozen=True, slots=True)
class EffectCall:
    """One effect that an attempt asked for and got."""

    job_id: str
    attempt: int
    name: str
    value: str
    began_us: int


@dataclass(frozen=True, slots=True)
class Kept:
    """How long an operation keeps a job after its end and then its tombstone, in seconds: the least it promises."""

    job_s: float = 7 * 86400.0
    tombstone_s: float = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class Rules:
    """What the checker must be told, because the contract leaves it to the operation or to the test.

    company_losses_max: lost starts of one job that need not count, because its runner died in company.
    recovery_s_max: seconds from a repair to the end of work that waited for it. None: this test does not say.
    has_doubtful_commits: the line to the store may break during a commit, so that `store-unavailable` does not say
        whether it happened.
    """

    kept: Mapping[str, Kept] = field(default_factory=dict)
    concurrency_max: Mapping[str, int] = field(default_factory=dict)
    company_losses_max: int = 0
    recovery_s_max: float | None = None
    has_doubtful_commits: bool = False

    def kept_of(self, operation: str) -> Kept:
        return self.kept.get(operation, Kept())


@dataclass(frozen=True)
class Evidence:
    """Everything that was told. `events` is None where no channel was configured."""

    calls: Sequence[Call]
    runs: Sequence[Run]
    effects: Sequence[EffectCall]
    events: Sequence[JsonObject] | None
    leftovers: Mapping[str, int]
    healed_ms: Sequence[int]

    @cached_property
    def sightings(self) -> Mapping[str, Sequence[Sighting]]:
        """What clients saw of each job, in the order in which they asked."""
        found: dict[str, list[Sighting]] = {}
        for call in self.calls:
            if call.mark is Mark.OK and call.ended_us is not None:
                for job in call.jobs:
                    seen = Sighting(job, call.tenant, call.began_us, call.ended_us)
                    found.setdefault(job["id"], []).append(seen)
        return found

    @cached_property
    def submits(self) -> Sequence[Call]:
        return [call for call in self.calls if call.verb == Verb.SUBMIT]

    @cached_property
    def acknowledged(self) -> Mapping[str, Call]:
        """The first submission that was answered with each job."""
        found: dict[str, Call] = {}
        for call in self.submits:
            if call.mark is Mark.OK:
                found.setdefault(call.jobs[0]["id"], call)
        return found

    @cached_property
    def final_reads(self) -> Mapping[str, Call]:
        """The dump's read of each job."""
        return {call.job_id: call for call in self._dumped(Verb.READ) if call.job_id is not None}

    @cached_property
    def final_jobs(self) -> Mapping[str, JsonObject]:
        """The jobs that the dump found."""
        return {job_id: call.jobs[0] for job_id, call in self.final_reads.items() if call.mark is Mark.OK}

    @cached_property
    def final_attempts(self) -> Mapping[str, Sequence[JsonObject]]:
        return {call.job_id: call.attempts for call in self._dumped(Verb.ATTEMPTS) if call.job_id is not None}

    @cached_property
    def final_lists(self) -> Mapping[str, Sequence[JsonObject]]:
        """The dump's lists by the status they were filtered by; "" is the list of all."""
        found: dict[str, list[JsonObject]] = {}
        for call in self._dumped(Verb.LIST):
            found.setdefault(call.listed_status, []).extend(call.jobs)
        return found

    @cached_property
    def jobs_by_correlation(self) -> Mapping[str, Sequence[str]]:
        """The jobs that exist or existed because of one call. A redrive is no call's."""
        found: dict[str, set[str]] = {}
        for job_id, sightings in self.sightings.items():
            if sightings[0].job["redrive_of"] is None:
                found.setdefault(sightings[0].job["correlation_id"], set()).add(job_id)
        for event in self.events or ():
            if event["data"]["redrive_of"] is None:
                found.setdefault(event["correlationid"], set()).add(event["subject"])
        return {correlation_id: sorted(job_ids) for correlation_id, job_ids in found.items()}

    def events_of(self, job_id: str) -> Sequence[JsonObject]:
        return self._events_by_job.get(job_id, ())

    @cached_property
    def _events_by_job(self) -> Mapping[str, Sequence[JsonObject]]:
        found: dict[str, list[JsonObject]] = {}
        for event in self.events or ():
            found.setdefault(event["subject"], []).append(event)
        return found

    def runs_of(self, job_id: str) -> Sequence[Run]:
        return self._runs_by_job.get(job_id, ())

    @cached_property
    def _runs_by_job(self) -> Mapping[str, Sequence[Run]]:
        found: dict[str, list[Run]] = {}
        for run in self.runs:
            found.setdefault(run.job_id, []).append(run)
        return found

    def _dumped(self, verb: Verb) -> Iterator[Call]:
        return (call for call in self.calls if call.who == DUMP and call.verb == verb)


def gather(histories: Iterable[Path], events: Path | None = None) -> Evidence:
    """Put the lines of these files together. Events are CloudEvents, one JSON text a line."""
    entries = read_history(histories)
    return Evidence(
        calls=list(_calls(entries)),
        runs=list(_runs(entries)),
        effects=list(_effects(entries)),
        events=None if events is None else read_events(events),
        leftovers=next((entry.more["counts"] for entry in reversed(entries) if entry.what == "leftovers"), {}),
        healed_ms=[entry.more["wall_ms"] for entry in entries if entry.what == HEALED],
    )


def read_events(path: Path) -> list[JsonObject]:
    """The events told so far. A half line at the end is not told yet."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def _calls(entries: Sequence[Entry]) -> Iterator[Call]:
    ends = {(entry.who, entry.more["call"]): entry for entry in entries if "call" in entry.more and _is_end(entry)}
    for entry in entries:
        if entry.mark is Mark.INVOKE and "call" in entry.more:
            yield _call(entry, ends.get((entry.who, entry.more["call"])))


def _is_end(entry: Entry) -> bool:
    return entry.mark is not Mark.INVOKE


def _call(begun: Entry, end: Entry | None) -> Call:
    told = {} if end is None else end.more
    return Call(
        who=begun.who,
        verb=begun.what,
        tenant=begun.tenant or "",
        began_us=begun.at_us,
        correlation_id=begun.more["correlation_id"],
        mark=Mark.UNKNOWN if end is None else end.mark,
        ended_us=None if end is None else end.at_us,
        wall_ms=told.get("wall_ms"),
        operation=begun.more.get("operation"),
        job_id=begun.job_id,
        key=begun.key,
        digest=begun.more.get("digest"),
        listed_status=begun.more.get("filter", ""),
        http_status=None if end is None else end.http_status,
        code=told.get("code"),
        jobs=told.get("jobs", ()),
        attempts=told.get("attempts", ()),
    )


def _runs(entries: Sequence[Entry]) -> Iterator[Run]:
    """Each start with the end that the same process wrote for it."""
    ends = {_start_of(entry): entry for entry in entries if entry.what == RUN and _is_end(entry)}
    for entry in entries:
        if entry.what == RUN and entry.mark is Mark.INVOKE:
            job_id, attempt, _ = key = _start_of(entry)
            end = ends.get(key)
            run = Run(job_id, attempt, entry.at_us)
            yield run if end is None else replace(run, mark=end.mark, ended_us=end.at_us)


def _start_of(entry: Entry) -> tuple[str, int, str]:
    assert entry.job_id is not None, "handlers name their job"
    assert entry.attempt is not None, "handlers name their attempt"
    return entry.job_id, entry.attempt, entry.who


def _effects(entries: Sequence[Entry]) -> Iterator[EffectCall]:
    asked: dict[tuple[str, int, str, str], int] = {}
    for entry in entries:
        if entry.what != EFFECT:
            continue
        job_id, attempt, who = _start_of(entry)
        name = entry.more["name"]
        if entry.mark is Mark.INVOKE:
            asked[job_id, attempt, who, name] = entry.at_us
        else:
            value = json.dumps(entry.more["value"], sort_keys=True)
            yield EffectCall(job_id, attempt, name, value, asked[job_id, attempt, who, name])
