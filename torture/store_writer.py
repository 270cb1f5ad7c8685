"""The writer that is killed: looks whether everything is there that was acknowledged, then hands in and finishes jobs.

It says each thing before and after it does it; what was said last tells how far it came.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coatcheck.core.ids import RANDOM_BITS, IdSequence
from coatcheck.core.job import JobRecord
from coatcheck.core.outcome import ResultBody, Succeeded
from coatcheck.core.policy import Policy
from coatcheck.core.states import Status
from coatcheck.store.clock import SystemClock
from coatcheck.store.records import Accepted, ClaimRequest, Finishing, IdempotencyKey, Replayed, Submission
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore

TENANT, OPERATION = "default", "notes"
AT_ONCE_MAX = 6
KEY_WINDOW_MS = 86_400_000
CLOCK = SystemClock()
IDS = IdSequence()
POLICY = Policy()
DONE = Succeeded(ResultBody("application/json", b'{"done":true}'))

Say = Callable[[str], None]


@dataclass
class Memory:
    """What the lane knows from all writers so far.

    `sent`: of each key without an answer, the ids of the jobs it was sent with. At most one of them may exist.
    """

    accepted: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    sent: dict[str, list[str]] = field(default_factory=dict)
    replayed: int = 0

    def hear(self, words: Sequence[str]) -> None:
        """Take in one line of a writer."""
        match words:
            case ["sent", key, job_id]:
                self.sent.setdefault(key, []).append(job_id)
            case ["accepted" | "replayed" as how, key, job_id]:
                self.sent.pop(key, None)
                self.accepted.add(job_id)
                self.replayed += how == "replayed"
            case ["finished", job_id]:
                self.finished.add(job_id)
            case _:
                pass


async def write_for_ever(path: Path, memory: Memory, say: Say, is_last: bool) -> None:
    """Look, ask again for what got no answer, and go on until killed. The last writer only looks."""
    store = SqliteStore(SqliteConfig(path, "torture"), CLOCK)
    await store.open()
    writer = Writer(store, say)
    await writer.look(memory)
    await writer.ask_again(dict(memory.sent))
    say("looked")
    while not is_last:
        await writer.hand_in(1 + secrets.randbelow(AT_ONCE_MAX))
        await writer.finish_some()
    await store.close()


class Writer:
    """A client and a worker in one."""

    def __init__(self, store: SqliteStore, say: Say) -> None:
        self._store = store
        self._say = say

    async def look(self, memory: Memory) -> None:
        """Every acknowledged job is there, and what was finished is finished."""
        for job_id in memory.accepted:
            job = await self._store.find_job(TENANT, job_id, CLOCK.now())
            if not isinstance(job, JobRecord):
                self._say(f"fault {job_id} was acknowledged and is lost")
            elif job_id in memory.finished and job.status is not Status.SUCCEEDED:
                self._say(f"fault {job_id} was finished and is {job.status}")

    async def ask_again(self, sent: dict[str, list[str]]) -> None:
        """The same key and body once more: a job of then, or a new one if there is none."""
        for key, job_ids in sent.items():
            submission = _submission(key)
            self._say(f"sent {key} {submission.job_id}")
            disposition = await self._store.accept_job(submission)
            match disposition:
                case Replayed(job) if job.id in job_ids:
                    self._say(f"replayed {key} {job.id}")
                case Accepted(job):
                    self._say(f"accepted {key} {job.id}")
                case _:
                    self._say(f"fault {key} was sent for one of {job_ids} and was answered with {disposition}")

    async def hand_in(self, count: int) -> None:
        """Several jobs in one commit."""
        await asyncio.gather(*(self._hand_in_one() for _ in range(count)))

    async def _hand_in_one(self) -> None:
        key = secrets.token_hex(8)
        submission = _submission(key)
        self._say(f"sent {key} {submission.job_id}")
        disposition = await self._store.accept_job(submission)
        assert isinstance(disposition, Accepted), disposition
        self._say(f"accepted {key} {submission.job_id}")

    async def finish_some(self) -> None:
        """Run what is first in the queue. What dead writers held stays theirs: nobody rescues here."""
        request = ClaimRequest("worker", 2, {OPERATION: 2}, {OPERATION: POLICY})
        claims = await self._store.claim_ready(request, CLOCK.now())
        for claim in claims.claims:
            await self._store.finish_attempt(Finishing(claim.lease, DONE, POLICY, 0.5), CLOCK.now())
            self._say(f"finished {claim.job.id}")


def _submission(key: str) -> Submission:
    now = CLOCK.now()
    payload = b'{"key":"%s"}' % key.encode()
    digest = hashlib.sha256(payload).hexdigest()
    return Submission(
        job_id=IDS.next_id(CLOCK.now_us(), secrets.randbits(RANDOM_BITS)),
        tenant=TENANT,
        operation=OPERATION,
        operation_version="1",
        payload=payload,
        created_at=now,
        available_at=now,
        deadline_at=None,
        priority=5,
        max_attempts=5,
        correlation_id="torture",
        key=IdempotencyKey(key, "sha256-canonical-1", digest, now + KEY_WINDOW_MS),
    )
