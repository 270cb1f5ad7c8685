"""/admin/audit: what operators did, newest first."""

from coatcheck.core.problems import Refused
from coatcheck.http.admin_answers import answer_fields, audit_fields, page_fields
from coatcheck.http.admin_requests import cursor_of, page_of, read_query
from coatcheck.http.exchange import Exchange
from coatcheck.http.services import HttpServices

_SEQ_DIGITS_MAX = 18


class AuditRoutes:
    """Answers with the log of one tenant, or of everything."""

    def __init__(self, services: HttpServices) -> None:
        self._store = services.store

    async def list(self, exchange: Exchange) -> None:
        parameters = read_query(exchange, "limit", "cursor", "tenant")
        size, place = page_of(parameters)
        tenant = parameters.get("tenant")
        if tenant is not None and "\0" in tenant:
            raise Refused("invalid-parameter", "No tenant has such a name.")
        found = await self._store.read_audit(size + 1, None if place is None else _seq(place), tenant)
        page = found[:size]
        cursor = cursor_of(str(page[-1].seq)) if len(found) > size else None
        await answer_fields(exchange, page_fields("entries", [audit_fields(one) for one in page], cursor))


def _seq(place: str) -> int:
    if not (place.isascii() and place.isdigit() and len(place) <= _SEQ_DIGITS_MAX):
        raise Refused(
            "invalid-cursor", "The cursor does not belong to this list; hand back next_cursor as it is given."
        )
    return int(place)
