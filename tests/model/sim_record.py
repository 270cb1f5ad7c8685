"""What happened in a story, noted by handlers, clients and stores as it happens, in virtual seconds."""

import hashlib
from dataclasses import dataclass, field

from coatcheck.store.clock import Clock
from coatcheck.store.records import Lease
from coatcheck.testing.checker_evidence import Call, EffectCall, Run
from coatcheck.testing.history import Mark
from coatcheck.testing.simulation_loop import SimulatedLoop, SimulatedProcess, current_process


@dataclass(slots=True)
class Start:
    """One run of a handler."""

    job_id: str
    attempt: int
    began_s: float
    process: SimulatedProcess | None
    ended_s: float | None = None
    mark: Mark = Mark.UNKNOWN

    def as_run(self) -> Run:
        """The same for the checker."""
        ended_us = None if self.ended_s is None else round(self.ended_s * 1_000_000)
        return Run(self.job_id, self.attempt, round(self.began_s * 1_000_000), self.mark, ended_us)


@dataclass(slots=True)
class Record:
    """Everything noted. `lines` tell the story in order, `faults` are promises seen broken on the way.

    `newest` holds the last attempt of each job that is known to have been claimed, `kept_s` when the last sign of life
    under a lease was sent that the store took, `endings` the attempts whose worker tried to end them.
    """

    loop: SimulatedLoop
    clock: Clock
    starts: list[Start] = field(default_factory=list)
    accepted_s: dict[str, float] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    kept_s: dict[tuple[str, int], float] = field(default_factory=dict)
    endings: set[tuple[str, int]] = field(default_factory=set)
    effects_done: int = 0
    calls: list[Call] = field(default_factory=list)
    effects: list[EffectCall] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def now_us(self) -> int:
        return round(self.loop.time() * 1_000_000)

    def tell(self, line: str) -> None:
        self.lines.append(f"{self.loop.time():9.3f} {line}")

    def blame(self, fault: str) -> None:
        self.faults.append(fault)
        self.tell(f"FAULT {fault}")

    def accepted(self, job_id: str, brought_s: float) -> None:
        self.accepted_s.setdefault(job_id, brought_s)

    def claimed(self, lease: Lease, asked_s: float) -> None:
        self.kept(lease, asked_s)
        self.newest[lease.job_id] = max(lease.attempt, self.newest.get(lease.job_id, 0))

    def kept(self, lease: Lease, sent_s: float) -> None:
        self.kept_s[lease.job_id, lease.attempt] = sent_s

    def is_old(self, lease: Lease) -> bool:
        """Whether a later attempt is known to have been given out."""
        return lease.attempt < self.newest.get(lease.job_id, 0)

    def begin(self, job_id: str, attempt: int) -> Start:
        start = Start(job_id, attempt, self.loop.time(), current_process())
        self.starts.append(start)
        self.tell(f"handler begins {job_id} attempt {attempt}")
        return start

    def end(self, start: Start, mark: Mark) -> None:
        start.ended_s, start.mark = self.loop.time(), mark

    def end_all(self, process: SimulatedProcess) -> None:
        """The process is gone, and so are the handlers it ran."""
        for start in self.starts:
            if start.process is process and start.ended_s is None:
                start.ended_s = self.loop.time()

    def do_effect(self) -> int:
        """Something that must not happen twice; returns which it was."""
        self.effects_done += 1
        return self.effects_done

    def digest(self) -> str:
        """The same for the same story."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:16]
