"""Job ids: unguessable, in order of creation, saying nothing of the request.

An id is `job_` and 28 characters of Crockford's base 32: 56 bits of microseconds since 1970, then 84 random bits.
"""

import re

from coatcheck.core.job import InstantMs

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
RANDOM_BITS = 84
JOB_ID_PATTERN = re.compile(r"job_[0-9a-hjkmnp-tv-z]{28}")
_PREFIX = "job_"
_CHARS = 28
# The characters that hold the microseconds, and how many bits of the last of them are random already.
_TIME_CHARS = 12
_TIME_SPARE_BITS = 4
# Two characters at a time: every accepted job needs an id.
_PAIRS = tuple(first + second for first in ALPHABET for second in ALPHABET)
_SHIFTS = tuple(range(10 * (_CHARS // 2 - 1), -1, -10))


def make_job_id(created_at_us: int, random_bits: int) -> str:
    """Build the id of a job created at this microsecond (Unix time) from RANDOM_BITS random bits."""
    number = (created_at_us << RANDOM_BITS) | random_bits
    return _PREFIX + "".join([_PAIRS[(number >> shift) & 1023] for shift in _SHIFTS])


def is_job_id(text: str) -> bool:
    """Whether the text has the form of a job id. A text of another form can name no job."""
    return JOB_ID_PATTERN.fullmatch(text) is not None


def created_at_of(job_id: str) -> InstantMs:
    """When the job of this id was created."""
    number = 0
    for char in job_id.removeprefix(_PREFIX)[:_TIME_CHARS]:
        number = number * len(ALPHABET) + ALPHABET.index(char)
    return (number >> _TIME_SPARE_BITS) // 1000


class IdSequence:
    """Gives job ids that rise strictly within one process even when its clock stands still or steps back."""

    def __init__(self) -> None:
        self._last_us = 0

    def next_id(self, now_us: int, random_bits: int) -> str:
        self._last_us = max(now_us, self._last_us + 1)
        return make_job_id(self._last_us, random_bits)
