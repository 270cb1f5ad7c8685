"""What the operators' API is a table of: its URLs with what answers them, and what its document says of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, RootModel

from coatcheck.http.reads import Answerer

NOW: Final = {200: "As it is now."}
THEN: Final = {200: "As it is then."}
MADE: Final = {201: "It is made; `Location` is its URL."}
PAGE: Final = {"limit": "How many a page holds at most.", "cursor": "`next_cursor` of the page before."}


class NewPayload(RootModel[Any]):
    """The payload to run with instead; without a body, the one that was handed in."""


@dataclass(frozen=True, slots=True)
class AdminRoute:
    """What answers a method of a URL.

    Args:
        answer: the answerer; it finds the id of the URL in `exchange.item`.
        summary: what the method is for.
        shape: which component the body of its answer fits.
        answers: when it is answered with which status.
        query: the parameters it knows, each with what it means here.
        body: what it reads; None: it reads none.
        codes: the problems it can answer beside those of all routes like it.
    """

    answer: Answerer
    summary: str
    shape: str
    answers: Mapping[int, str] = field(default_factory=lambda: NOW)
    query: Mapping[str, str] = field(default_factory=dict)
    body: type[BaseModel] | None = None
    codes: tuple[str, ...] = ()


AdminMethods: TypeAlias = Mapping[str, AdminRoute]
"""By method. GET is answered to HEAD as well."""


@dataclass(frozen=True, slots=True)
class AdminCollection:
    """What answers /admin/{name}, /admin/{name}/{id} and, by their names, /admin/{name}/{id}/{part}.

    `about`: what is collected here. `id_text`: what its ids are.
    """

    name: str
    about: str
    id_text: str = ""
    methods: AdminMethods = field(default_factory=dict)
    item: AdminMethods = field(default_factory=dict)
    parts: Mapping[str, AdminMethods] = field(default_factory=dict)
