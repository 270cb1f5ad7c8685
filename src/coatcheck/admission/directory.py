"""What this process knows of tenants, operations and limits: read from the store again within a second of a change.

A hint makes it read at once; behind that it asks every POLL_S for the version alone. `confirmed` waits for an answer
that is at most CONFIRMED_S old, so that nobody acts on a key or a limit that was taken back longer ago.
"""

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from coatcheck.core.quotas import LimitBook, LimitKey
from coatcheck.core.tenancy import Controls, OperationMode, TenantControl
from coatcheck.core.terms import Terms
from coatcheck.observe.rounds import Rounds
from coatcheck.store.clock import Clock
from coatcheck.store.controls import ControlStore

POLL_S: Final = 0.3
CONFIRMED_S: Final = 0.8


class Directory:
    """The controls of the store, and the book of limits made of them and the defaults.

    Args:
        store: where they are kept.
        clock: of this process.
        defaults: the limits of settings and declarations.
        windows: the length of the window of each kind of cost, in seconds.
    """

    def __init__(
        self,
        store: ControlStore,
        clock: Clock,
        defaults: Mapping[LimitKey, float | None],
        windows: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self._store = store
        self._clock = clock
        self._defaults = defaults
        self._windows = windows
        self._confirmed_s = float("-inf")
        self._reading = asyncio.Lock()
        self._rounds = Rounds("directory", self._turn)
        self._watchers: list[Callable[[], None]] = []
        self.controls = Controls()
        self.book = LimitBook(defaults)
        self._terms = Terms(self.controls, self.book, windows)

    async def start(self) -> None:
        """Read the controls for the first time, and go on.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        await self.refresh()
        self._rounds.start()

    async def stop(self) -> None:
        """Read no more."""
        await self._rounds.stop()

    def wake(self) -> None:
        """Somebody says that the controls changed."""
        self._rounds.wake()

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever other controls were read."""
        self._watchers.append(callback)

    def current_terms(self) -> Terms:
        """What holds for tenants at this moment; it stays as it is, and the next moment may have others."""
        if self._terms.book is not self.book:
            self._terms = Terms(self.controls, self.book, self._windows)
        return self._terms

    def tenant(self, name: str) -> TenantControl:
        """What was decided about a tenant, or what holds for everybody."""
        return self.controls.tenants.get(name) or TenantControl(name)

    def mode(self, operation: str) -> OperationMode:
        """The mode of an operation."""
        return self.controls.modes.get(operation, OperationMode.OPEN)

    @property
    def is_confirmed(self) -> bool:
        """Whether the controls were looked at within CONFIRMED_S. If not, `confirmed` is to be awaited."""
        return self._clock.monotonic_s() - self._confirmed_s <= CONFIRMED_S

    async def confirmed(self) -> None:
        """Return once the controls are known as they were at most CONFIRMED_S ago.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        if not self.is_confirmed:
            await self.refresh()

    async def refresh(self) -> None:
        """Ask for the version, and read the controls if it is another.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        async with self._reading:
            asked_s = self._clock.monotonic_s()
            if asked_s <= self._confirmed_s:
                return
            version = await self._store.read_controls_version()
            if version != self.controls.version:
                self._set(await self._store.read_controls())
            self._confirmed_s = asked_s

    async def _turn(self) -> float:
        await self.refresh()
        return POLL_S

    def _set(self, controls: Controls) -> None:
        self.controls = controls
        self.book = LimitBook(self._defaults, controls.overrides)
        for callback in self._watchers:
            callback()
