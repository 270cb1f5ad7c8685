"""What operators send: a JSON object that fits a model, parameters that are known, and who they are."""

import base64
import binascii
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from coatcheck.admission.admit import parse_body
from coatcheck.admission.input_faults import faults_of
from coatcheck.admission.media_type import require_json
from coatcheck.core import limits
from coatcheck.core.problems import Refused
from coatcheck.http.body import read_body
from coatcheck.http.exchange import Exchange
from coatcheck.http.lists import page_size, read_parameters
from coatcheck.http.services import HttpServices
from coatcheck.operators.actor import Actor


class Wish(BaseModel):
    """A body of the admin API. What it does not know it refuses."""

    model_config = ConfigDict(extra="forbid", strict=True)


W = TypeVar("W", bound=Wish)


async def read_wish(services: HttpServices, exchange: Exchange, form: type[W]) -> W:
    """The body as `form` describes it; none at all is an empty object.

    Raises:
        Refused: `payload-too-large`, `unsupported-media-type`, `malformed-json` or `invalid-request`.
    """
    raw_body = await read_body(exchange, limits.ADMIN_BODY_BYTES_MAX, services.settings.body_timeout_s)
    if not raw_body:
        body = parse_body(b"{}")
    else:
        require_json(exchange.headers.get(b"content-type", ()))
        body = parse_body(raw_body)
    try:
        return form.model_validate(body)
    except ValidationError as error:
        faults = faults_of(error, body)
        raise Refused("invalid-request", "The body does not fit what is asked for here.", errors=faults) from None


def read_query(exchange: Exchange, *known: str) -> Mapping[str, str]:
    """The query parameters by name, each of them known and given once.

    Raises:
        Refused: `invalid-parameter`.
    """
    return read_parameters(exchange.scope.get("query_string", b""), known)


def page_of(parameters: Mapping[str, str]) -> tuple[int, str | None]:
    """How many are wanted, and after which place; see `cursor_of`.

    Raises:
        Refused: `invalid-parameter` or `invalid-cursor`.
    """
    cursor = parameters.get("cursor")
    return page_size(parameters.get("limit")), None if cursor is None else place_of(cursor)


def cursor_of(place: str) -> str:
    """The cursor of what comes after a place in a list, for its reader to hand back as it is."""
    return base64.urlsafe_b64encode(place.encode("utf-8")).decode("ascii").rstrip("=")


def actor_of(exchange: Exchange) -> Actor:
    """Who asks, and from where, as the audit log names them."""
    client = exchange.scope.get("client")
    return Actor(exchange.identity.actor, str(client[0]) if client else "unknown")


def place_of(cursor: str) -> str:
    """The place that a cursor stands for.

    Raises:
        Refused: `invalid-cursor`.
    """
    try:
        if len(cursor) > limits.ADMIN_CURSOR_CHARS_MAX or not cursor.isascii():
            raise ValueError("no cursor of ours")
        place = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        place = ""
    if not place or "\0" in place or cursor_of(place) != cursor:
        detail = "The cursor does not belong to this list; hand back next_cursor as it is given."
        raise Refused("invalid-cursor", detail)
    return place
