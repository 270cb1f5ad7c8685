"""The last question before a commit: is there room for one more job, of this tenant, now?"""

from coatcheck.admission.options import Admitted
from coatcheck.admission.rates import SUBMISSIONS, Permit, Rates
from coatcheck.app import Operation


class Gate:
    """Asks every limit that holds for a submission. What was taken for one that is not accepted is given back."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates

    async def enter(self, operation: Operation, admitted: Admitted, tenant: str) -> Permit | None:
        """Let an admitted submission go on to its commit, with what is to be given back if nothing comes of it.

        Raises:
            Refused: `rate-limited` or `saturated`. Nothing was taken.
        """
        if not self._rates.has(SUBMISSIONS):
            return None
        return await self._rates.take(SUBMISSIONS, tenant, operation.name)
