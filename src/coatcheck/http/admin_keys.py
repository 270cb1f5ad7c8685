"""/admin/tenants/{tenant}/keys and /admin/keys: API keys, each shown once, when it is made."""

from typing import Annotated

from pydantic import Field

from coatcheck.admission.instants import parse_moment
from coatcheck.core import limits
from coatcheck.core.job import InstantMs
from coatcheck.core.problems import FieldError
from coatcheck.core.scopes import CLIENT_SCOPES, Scope
from coatcheck.http.admin_answers import answer_fields, key_fields, new_key_fields, page_fields
from coatcheck.http.admin_requests import Wish, actor_of, read_query, read_wish
from coatcheck.http.exchange import Exchange
from coatcheck.http.services import HttpServices
from coatcheck.operators.faults import invalid
from coatcheck.operators.keys import Keys, WantedKey

_CLIENT_SCOPES = [scope.value for scope in Scope if scope in CLIENT_SCOPES]


class KeyWish(Wish):
    """A key to be made."""

    label: Annotated[str, Field(description="What it is for, to be told apart by.")] = ""
    scopes: Annotated[list[str], Field(description="Of submit, read, cancel and admin.")] = _CLIENT_SCOPES
    expires_at: Annotated[str | float | None, Field(description="RFC 3339, or seconds from now; else never.")] = None


class Rotation(Wish):
    """How a key is replaced."""

    grace_s: Annotated[float, Field(description="For how many seconds the old key is good beside the new one.")] = (
        limits.KEY_GRACE_S_DEFAULT
    )


class KeyRoutes:
    """Answers with keys as they are known; with a key itself only where it was just made."""

    def __init__(self, services: HttpServices, keys: Keys) -> None:
        self._services = services
        self._keys = keys
        self._clock = services.store.clock

    async def list(self, exchange: Exchange) -> None:
        read_query(exchange)
        keys, now = await self._keys.list(exchange.item), self._clock.now()
        await answer_fields(exchange, page_fields("keys", [key_fields(key, now) for key in keys], None))

    async def create(self, exchange: Exchange) -> None:
        wish = await read_wish(self._services, exchange, KeyWish)
        expires_at = _moment(wish.expires_at, self._clock.now())
        wanted = WantedKey(exchange.item, wish.label, _scopes(wish.scopes), expires_at)
        new = await self._keys.create(wanted, actor_of(exchange))
        location = f"{exchange.urls.prefix}/admin/keys/{new.key.key_id}"
        await answer_fields(exchange, new_key_fields(new, self._clock.now()), 201, location)

    async def show(self, exchange: Exchange) -> None:
        read_query(exchange)
        await answer_fields(exchange, key_fields(await self._keys.find(exchange.item), self._clock.now()))

    async def revoke(self, exchange: Exchange) -> None:
        await read_wish(self._services, exchange, Wish)
        key = await self._keys.revoke(exchange.item, actor_of(exchange))
        await answer_fields(exchange, key_fields(key, self._clock.now()))

    async def rotate(self, exchange: Exchange) -> None:
        wish = await read_wish(self._services, exchange, Rotation)
        new = await self._keys.rotate(exchange.item, actor_of(exchange), wish.grace_s)
        location = f"{exchange.urls.prefix}/admin/keys/{new.key.key_id}"
        await answer_fields(exchange, new_key_fields(new, self._clock.now()), 201, location)


def _scopes(names: list[str]) -> frozenset[Scope]:
    known = set(Scope)
    faults = [
        FieldError(f"/scopes/{place}", f"This must be one of {', '.join(Scope)}, once.")
        for place, name in enumerate(names)
        if name not in known or name in names[:place]
    ]
    if faults:
        raise invalid(*faults[: limits.INPUT_ERRORS_LISTED_MAX])
    return frozenset(map(Scope, names))


def _moment(wish: str | float | None, now: InstantMs) -> InstantMs | None:
    text = f"{wish:.3f}" if isinstance(wish, (int, float)) else wish
    moment = None if text is None else parse_moment(text, now)
    if text is not None and moment is None:
        raise invalid(FieldError("/expires_at", "This must be an instant as RFC 3339 has it, or seconds from now."))
    return moment
