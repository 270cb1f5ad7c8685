"""The last question before a commit: is there room for one more job, of this tenant, now?"""

from collections.abc import Sequence

from coatcheck.admission.buckets import Draw
from coatcheck.admission.measures import Measures, Tally, enter, leave
from coatcheck.admission.options import Admitted
from coatcheck.admission.rates import SUBMISSIONS, Rates
from coatcheck.admission.saturation import Saturation
from coatcheck.app import Operation


class Passage:
    """A submission between the gate and its commit. It is settled once, whatever becomes of it."""

    __slots__ = ("_rates", "_taken", "_tallies")

    def __init__(self, tallies: Sequence[Tally], rates: Rates) -> None:
        self._tallies = tallies
        self._rates = rates
        self._taken: Sequence[Draw] = ()
        enter(tallies)

    def take_at_hand(self, operation: str, tenant: str) -> bool:
        """Take the tokens of a submission if nobody else has to be asked for them. False: `take` has to be awaited.

        Raises:
            Refused: as `Rates.take`. The passage is settled.
        """
        try:
            taken = self._rates.take_at_hand(SUBMISSIONS, tenant, operation)
        except BaseException:
            self.settle(False)
            raise
        if taken is None:
            return False
        self._taken = taken
        return True

    async def take(self, operation: str, tenant: str) -> None:
        """Take the tokens of a submission. Others may be let in meanwhile, and this one counts for them already.

        Raises:
            Refused: as `Rates.take`. The passage is settled.
        """
        try:
            self._taken = await self._rates.take(SUBMISSIONS, tenant, operation)
        except BaseException:
            self.settle(False)
            raise

    def settle(self, is_accepted: bool) -> None:
        """The job is in the queue, or what was taken for it is given back."""
        leave(self._tallies, is_accepted)
        if self._taken and not is_accepted:
            self._rates.give_back(self._taken)


class Gate:
    """Asks every limit that holds for a submission."""

    def __init__(self, rates: Rates, saturation: Saturation, measures: Measures) -> None:
        self._rates = rates
        self._saturation = saturation
        self._measures = measures

    async def enter(self, operation: Operation, admitted: Admitted, tenant: str) -> Passage:
        """Let an admitted submission go on to its commit, after which the passage is to be settled.

        Raises:
            Refused: `rate-limited`, `too-many-queued` or `saturated`. Nothing was taken.
        """
        if self._saturation.is_blind(operation.name):
            await self._measures.measured()
        self._saturation.require_room(operation, admitted, tenant)
        passage = Passage(self._measures.tallies(operation.name, tenant), self._rates)
        if self._rates.has(SUBMISSIONS) and not passage.take_at_hand(operation.name, tenant):
            await passage.take(operation.name, tenant)
        return passage
