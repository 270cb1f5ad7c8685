"""What comes with a body, and what an admitted submission is.

Made for every request, hence structs: a frozen dataclass takes ten times as long to make.
"""

from msgspec import Struct

from coatcheck.core.costs import Millionths
from coatcheck.core.job import InstantMs


class SubmissionOptions(Struct, frozen=True):
    """What a client asks for beside the body. None: not asked for.

    `start_after` and `deadline` are instants in ms; a start in the past means at once.
    """

    correlation_id: str
    idempotency_key: str | None = None
    start_after: InstantMs | None = None
    deadline: InstantMs | None = None
    priority: int | None = None
    traceparent: str | None = None


class KeyOfBody(Struct, frozen=True):
    """An idempotency key with the fingerprint of the body it came with."""

    key: str
    algorithm: str
    fingerprint: str


class Admitted(Struct, frozen=True):
    """A submission that may enter, as decided at `admitted_at`. `payload` is the body as received, `costs` what it
    costs by kind."""

    payload: bytes
    admitted_at: InstantMs
    start_at: InstantMs
    deadline_at: InstantMs | None
    priority: int
    correlation_id: str
    traceparent: str | None
    key: KeyOfBody | None
    costs: tuple[tuple[str, Millionths], ...] = ()
