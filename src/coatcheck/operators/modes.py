"""Operations as a whole: whether they take work, and whether they start it."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from coatcheck.core.problems import Refused
from coatcheck.core.tenancy import OperationMode
from coatcheck.operators.actor import Actor
from coatcheck.operators.faults import check_operation_name
from coatcheck.store.contract import Store
from coatcheck.store.controls import SetMode


class OperationState(Struct, frozen=True):
    """An operation's mode, and how many of its jobs wait (for their time included) and run."""

    name: str
    mode: OperationMode
    queued: int
    running: int


class Modes:
    """What an operator may do to operations.

    Args:
        store: where their modes and jobs are.
        operations: those of the app; None where the app is not at hand, so that any name may be one.
    """

    def __init__(self, store: Store, operations: Collection[str] | None) -> None:
        self._store = store
        self._operations = operations

    async def list(self) -> Sequence[OperationState]:
        """Those of the app, and all others that have work or a mode, by name."""
        modes = (await self._store.read_controls()).modes
        measures = {measure.operation: measure for measure in await self._store.measure_queues(self._store.clock.now())}
        names = {*(self._operations or ()), *modes, *measures}
        return [
            OperationState(
                name,
                modes.get(name, OperationMode.OPEN),
                measures[name].ready + measures[name].scheduled if name in measures else 0,
                measures[name].running if name in measures else 0,
            )
            for name in sorted(names)
        ]

    async def find(self, name: str) -> OperationState:
        """One of them.

        Raises:
            Refused: `not-found`.
        """
        found = next((state for state in await self.list() if state.name == name), None)
        if found is None:
            raise Refused("not-found", "There is no operation of this name.")
        return found

    async def set(self, name: str, mode: OperationMode, actor: Actor) -> OperationState:
        """Give an operation a mode. One that has it changes nothing.

        Raises:
            Refused: `invalid-request`, or `not-found` where the app is at hand and has no such operation.
        """
        check_operation_name(name, "/operation")
        if self._operations is not None and name not in self._operations:
            raise Refused("not-found", "There is no operation of this name.")
        before = (await self._store.read_controls()).modes.get(name, OperationMode.OPEN)
        entry = actor.entry(self._store.clock.now(), "operation.set", name, None, {"from": before, "to": mode})
        await self._store.change_controls(SetMode(name, mode), entry)
        states = [state for state in await self.list() if state.name == name]
        return states[0] if states else OperationState(name, mode, 0, 0)
