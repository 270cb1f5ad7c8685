"""The shipped suite on every engine. What an engine may do differently stands in its factory's capabilities."""

import importlib
from pathlib import Path
from pkgutil import iter_modules

import pytest

from coatcheck.testing import conformance
from coatcheck.testing.conformance.acceptance import TestAcceptance, TestKeyRaces, TestKeys
from coatcheck.testing.conformance.budgets import (
    TestBudgets,
    TestBudgetsInInbox,
    TestChargesAndKeys,
    TestGivingBack,
    TestSpendingLists,
)
from coatcheck.testing.conformance.claims import (
    TestClaims,
    TestConcurrency,
    TestDoubleClaims,
    TestDueTimes,
    TestOverdue,
)
from coatcheck.testing.conformance.commands import TestCancel, TestErase, TestRedrive
from coatcheck.testing.conformance.commits import TestDurability, TestFaults, TestGroupCommit
from coatcheck.testing.conformance.controls import TestAudit, TestControls, TestTenants
from coatcheck.testing.conformance.costs import TestProcessingTime, TestSpending
from coatcheck.testing.conformance.effects import TestEffects
from coatcheck.testing.conformance.fairness import TestFairness
from coatcheck.testing.conformance.finishing import (
    TestCancelledWhileRunning,
    TestFailure,
    TestOtherOutcomes,
    TestSuccess,
)
from coatcheck.testing.conformance.inbox import TestInbox, TestInboxEvents, TestInboxForOperators, TestInboxKeys
from coatcheck.testing.conformance.keys import TestApiKeys
from coatcheck.testing.conformance.leases import TestHeartbeats, TestRescue, TestZombies
from coatcheck.testing.conformance.operating import TestDeadLetters, TestOperating, TestSurveys
from coatcheck.testing.conformance.outbox import TestOutbox
from coatcheck.testing.conformance.queue_limits import (
    TestQueueLimits,
    TestQueueLimitsAndKeys,
    TestQueueLimitsInInbox,
    TestQueueLimitsTogether,
)
from coatcheck.testing.conformance.reading import TestExpiry, TestIsolation, TestLists, TestMeasures
from coatcheck.testing.conformance.revoking import TestQuarantine, TestRevokedInbox, TestRevoking, TestWhatIsLeft
from coatcheck.testing.conformance.start_limits import (
    TestHeldTurns,
    TestShares,
    TestStartLimits,
    TestStartLimitsTogether,
    TestWeights,
)
from coatcheck.testing.conformance.transitions import TestTransitions
from coatcheck.testing.conformance.upkeep import TestBaseline, TestOverdueSweep, TestRetention
from coatcheck.testing.conformance.wakeups import TestWakeUps
from coatcheck.testing.conformance.world import StoreFactory
from harness.postgres_factory import PostgresFactory
from harness.sqlite_factory import SqliteFactory

SUITE = [
    TestAcceptance,
    TestApiKeys,
    TestAudit,
    TestBaseline,
    TestBudgets,
    TestBudgetsInInbox,
    TestCancel,
    TestCancelledWhileRunning,
    TestChargesAndKeys,
    TestClaims,
    TestConcurrency,
    TestControls,
    TestDeadLetters,
    TestDoubleClaims,
    TestDueTimes,
    TestDurability,
    TestEffects,
    TestErase,
    TestExpiry,
    TestFailure,
    TestFairness,
    TestFaults,
    TestGroupCommit,
    TestGivingBack,
    TestHeartbeats,
    TestHeldTurns,
    TestInbox,
    TestInboxEvents,
    TestInboxForOperators,
    TestInboxKeys,
    TestIsolation,
    TestKeyRaces,
    TestKeys,
    TestLists,
    TestMeasures,
    TestOperating,
    TestOtherOutcomes,
    TestOutbox,
    TestOverdue,
    TestOverdueSweep,
    TestProcessingTime,
    TestQuarantine,
    TestQueueLimits,
    TestQueueLimitsAndKeys,
    TestQueueLimitsInInbox,
    TestQueueLimitsTogether,
    TestRedrive,
    TestRescue,
    TestRetention,
    TestRevokedInbox,
    TestRevoking,
    TestShares,
    TestSpending,
    TestSpendingLists,
    TestStartLimits,
    TestStartLimitsTogether,
    TestSuccess,
    TestSurveys,
    TestTenants,
    TestTransitions,
    TestWakeUps,
    TestWeights,
    TestWhatIsLeft,
    TestZombies,
]


@pytest.fixture(params=["sqlite", "postgres", "postgres-pooled"])
def store_factory(request: pytest.FixtureRequest, tmp_path: Path) -> StoreFactory:
    if request.param == "sqlite":
        return SqliteFactory(tmp_path / "conformance.db")
    return PostgresFactory(is_pooled=request.param == "postgres-pooled")


def test_no_class_of_the_suite_is_left_out() -> None:
    modules = [
        importlib.import_module(f"{conformance.__name__}.{found.name}") for found in iter_modules(conformance.__path__)
    ]
    shipped = {name for module in modules for name in vars(module) if name.startswith("Test")}
    assert shipped == {suite.__name__ for suite in SUITE}
