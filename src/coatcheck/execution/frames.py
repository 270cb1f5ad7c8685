"""What control and a runner say to each other: one small struct for each message, told apart by its tag.

Lease tokens never cross: a runner names an attempt by its number `seq`, and only control can write for it.
"""

import struct
from typing import TypeAlias

import msgspec

from coatcheck.core.errors import ErrorCategory
from coatcheck.core.job import InstantMs

# --- how an attempt ended, as its runner saw it -------------------------------------------------------------


class Returned(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The handler returned and its result could be encoded."""

    content_type: str
    body: bytes
    file_name: str | None


class Raised(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The handler raised, its input did not fit, or its result cannot be kept."""

    category: ErrorCategory
    detail: str
    is_retryable: bool
    code: str | None
    operator_detail: str | None


class AskedRetry(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The handler asked to be tried again after `delay_s` seconds."""

    delay_s: float


class Stopped(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The handler stopped because it was told to."""


class NotMine(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """This build cannot read the job: another version of the operation wrote it."""


Verdict: TypeAlias = Returned | Raised | AskedRetry | Stopped | NotMine

# --- from control to a runner -------------------------------------------------------------------------------


class Start(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Run this attempt."""

    seq: int
    job_id: str
    chain_id: str
    attempt: int
    tenant: str
    operation: str
    operation_version: str
    correlation_id: str
    deadline_at: InstantMs | None
    payload: bytes


class Stop(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Tell this attempt's handler to stop."""

    seq: int


class EffectAnswer(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The recorded value (None: nothing is recorded); `is_lost`: the lease is gone, the attempt must stop."""

    call: int
    value: bytes | None
    is_lost: bool


class Quit(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """End the process: there is nothing left to do."""


class SpendAnswer(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The units still left (None: nothing bounds them); `must_stop`: they are used up, or the lease is gone."""

    call: int
    left: float | None
    must_stop: bool


ToRunner: TypeAlias = Start | Stop | EffectAnswer | SpendAnswer | Quit

# --- from a runner to control -------------------------------------------------------------------------------


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The app is imported; work may come."""


class ImportFailed(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The app cannot be imported; `reason` is one sentence."""

    reason: str


class Done(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The attempt ended."""

    seq: int
    verdict: Verdict


class ProgressMade(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The latest progress of an attempt."""

    seq: int
    fraction: float | None
    message: str | None


class EffectAsk(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Look up an effect (`value` None) or record it."""

    call: int
    seq: int
    name: str
    value: bytes | None


class LoopBlocked(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Something keeps the runner's loop from turning. `seq` is None where nobody can tell which attempt it is."""

    seq: int | None
    blocked_s: float
    where: str


class SpendAsk(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Count units of a kind that the attempt spends."""

    call: int
    seq: int
    kind: str
    units: float


ToControl: TypeAlias = Ready | ImportFailed | Done | ProgressMade | EffectAsk | SpendAsk | LoopBlocked

# --- as bytes -----------------------------------------------------------------------------------------------

HEADER = struct.Struct("<I")
_ENCODER = msgspec.msgpack.Encoder()


def append_frame(buffer: bytearray, frame: ToRunner | ToControl) -> None:
    """Append one frame to `buffer`: its length in four bytes, then itself."""
    start = len(buffer)
    buffer += b"\0\0\0\0"
    _ENCODER.encode_into(frame, buffer, start + HEADER.size)
    HEADER.pack_into(buffer, start, len(buffer) - start - HEADER.size)


def to_bytes(frame: ToRunner | ToControl) -> bytes:
    """One frame as it travels."""
    buffer = bytearray()
    append_frame(buffer, frame)
    return bytes(buffer)
