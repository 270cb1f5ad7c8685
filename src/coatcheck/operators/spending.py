"""What tenants' jobs cost, window by window."""

import re
from collections.abc import Sequence

from coatcheck.core.costs import Window
from coatcheck.core.problems import Refused
from coatcheck.operators.faults import check_tenant_name
from coatcheck.store.costs import CostStore, SpendingRow

_PLACE = re.compile(r"([0-9]{1,15})/([0-9]{1,12})/([a-z0-9_-]{1,32})/([a-z0-9_-]{1,63})")


class Spendings:
    """What an operator may know of costs."""

    def __init__(self, store: CostStore) -> None:
        self._store = store

    async def list(self, tenant: str, limit: int, place: str | None = None) -> Sequence[SpendingRow]:
        """What the tenant's jobs cost, the newest windows first; those after a `place_of`.

        Raises:
            Refused: `invalid-request` or `invalid-cursor`.
        """
        check_tenant_name(tenant, "/tenant")
        return await self._store.list_spending(tenant, limit, None if place is None else _row_of(place))


def place_of(row: SpendingRow) -> str:
    """Where a row stands in the list."""
    return f"{row.window.began_at}/{row.window.length_ms}/{row.kind}/{row.operation}"


def _row_of(place: str) -> SpendingRow:
    match = _PLACE.fullmatch(place)
    if match is None:
        raise Refused("invalid-cursor", "The cursor does not belong to this list; hand it back as it is given.")
    return SpendingRow(match[3], Window(int(match[1]), int(match[2])), match[4], 0, 0)
