"""What operators decided about tenants and operations, as every process knows it within a second."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct


class Revocation(StrEnum):
    """What becomes of a revoked tenant's jobs; new ones are refused under each of them.

    finish: what was accepted is done. quarantine: what waits is held, what runs comes to its end, and all of it can be
    undone. cancel: what waits or runs is cancelled. erase: the same, then payloads and results are deleted.
    """

    FINISH = "finish"
    QUARANTINE = "quarantine"
    CANCEL = "cancel"
    ERASE = "erase"

    @property
    def strictness(self) -> int:
        """Its place in that order: what is stricter may take the place of what is less so."""
        return list(Revocation).index(self)


class OperationMode(StrEnum):
    """open: takes and starts work. paused: takes it and starts none. draining: starts it and takes none."""

    OPEN = "open"
    PAUSED = "paused"
    DRAINING = "draining"


class TenantControl(Struct, frozen=True):
    """What is not as usual with a tenant. `weight` is its share of the turns beside tenants of weight 1.

    `by_operation` holds policies that stand in the place of `revocation` in single operations.
    """

    name: str
    weight: float = 1.0
    is_paused: bool = False
    revocation: Revocation | None = None
    by_operation: Mapping[str, Revocation] = {}

    @property
    def may_submit(self) -> bool:
        """Whether new work is taken."""
        return self.revocation is None

    @property
    def may_read(self) -> bool:
        """Whether its jobs can be read: until they are erased."""
        return self.revocation is not Revocation.ERASE

    @property
    def may_start(self) -> bool:
        """Whether jobs that wait may start, whatever their operation."""
        policies = (self.revocation, *self.by_operation.values())
        return not self.is_paused and all(policy in (None, Revocation.FINISH) for policy in policies)

    def may_start_in(self, operation: str) -> bool:
        """Whether jobs of an operation that wait may start."""
        return not self.is_paused and self.revocation_in(operation) in (None, Revocation.FINISH)

    def revocation_in(self, operation: str) -> Revocation | None:
        """What becomes of the tenant's jobs in an operation."""
        return None if self.revocation is None else self.by_operation.get(operation, self.revocation)


def compare_revocations(held: TenantControl, wanted: TenantControl) -> Sequence[int]:
    """How much stricter the revocation that is wanted is than the one that is held: in general, and then in each
    operation that one of them names. Negative numbers: less strict there.
    """
    operations = held.by_operation.keys() | wanted.by_operation.keys()
    pairs = [(held.revocation, wanted.revocation)]
    pairs += [(held.revocation_in(operation), wanted.revocation_in(operation)) for operation in operations]
    return [_strictness(new) - _strictness(old) for old, new in pairs]


def _strictness(revocation: Revocation | None) -> int:
    return -1 if revocation is None else revocation.strictness


class LimitOverride(Struct, frozen=True):
    """A limit as an operator set it; see `core.quotas` for what `tenant` and `operation` can be. None: unlimited."""

    name: str
    tenant: str
    operation: str
    value: float | None


class Controls(Struct, frozen=True):
    """All of it at one moment. Tenants and operations about which nothing was decided are not in it.

    `version` rises with every change, so that a process can tell with one small read whether it knows them all.
    """

    version: int = 0
    tenants: Mapping[str, TenantControl] = {}
    modes: Mapping[str, OperationMode] = {}
    overrides: tuple[LimitOverride, ...] = ()
