"""Stores beside the reference model: whatever happens in whatever order, every answer is the one predicted.

MODEL_EXAMPLES and MODEL_STEPS make it longer (60 and 40 together make a minute's work on SQLite).
"""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from .engines import ENGINES, fresh_engine
from .limits_machine import LimitsMachine
from .machine import StoreMachine

PARTS = 4
EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "60"))
STEPS = int(os.environ.get("MODEL_STEPS", "40"))
# A database that has to be made and asked over a socket takes its time: so many times fewer examples.
SHARES = {"sqlite": 1, "postgres": 8}


def profile(engine: str) -> settings:
    """How much is tried on an engine in each part."""
    return settings(
        max_examples=-(-EXAMPLES // (PARTS * SHARES[engine])),
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


@pytest.mark.timeout(24 * 3600)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_store_does_what_the_model_predicts(engine: str, part: int) -> None:
    class Machine(EngineMachine):
        name = engine

    run_state_machine_as_test(Machine, settings=profile(engine))


@pytest.mark.timeout(24 * 3600)
@pytest.mark.parametrize("engine", ENGINES)
def test_as_many_jobs_start_as_limits_and_decisions_allow(engine: str) -> None:
    class Machine(EngineLimitsMachine):
        name = engine

    run_state_machine_as_test(Machine, settings=profile(engine))


class OnEngine:
    """A machine over a database of its own."""

    name: str

    def __init__(self) -> None:
        self._fresh = fresh_engine(self.name)
        super().__init__(self._fresh.__enter__())  # type: ignore[call-arg]

    def teardown(self) -> None:
        try:
            super().teardown()  # type: ignore[misc]
        finally:
            self._fresh.__exit__(None, None, None)


class EngineMachine(OnEngine, StoreMachine):
    """Every answer, one after the other."""


class EngineLimitsMachine(OnEngine, LimitsMachine):
    """How many start."""
