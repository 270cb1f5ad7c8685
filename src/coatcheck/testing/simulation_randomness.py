"""Randomness from a seed: while a story runs, everything in the process that draws random numbers draws these."""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock


@contextmanager
def seeded_randomness(seed: str) -> Iterator[None]:
    """Make `random`, `secrets` and `os.urandom` repeatable until the block ends. Never outside of tests."""
    source = random.Random(seed)  # noqa: S311 - repeatable on purpose
    state = random.getstate()
    random.seed(f"{seed}-global")
    try:
        with mock.patch.object(os, "urandom", source.randbytes), mock.patch("random._urandom", source.randbytes):
            yield
    finally:
        random.setstate(state)
