"""Which jobs an operator means, from the parameters of a list or the members of a body."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from coatcheck.admission.instants import parse_moment
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.ids import is_job_id
from coatcheck.core.job import InstantMs
from coatcheck.core.problems import Refused
from coatcheck.core.states import Status
from coatcheck.store.operating import JobFilter

FILTERS: Final = (
    *("tenant", "operation", "status", "category"),
    *("created_since", "created_until", "finished_since", "finished_until"),
)


class BadFilter(Exception):
    """A value is none of its kind. `name` is whose, `detail` says what it must be."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(name, detail)
        self.name = name
        self.detail = detail


def filter_of(given: Mapping[str, str | None]) -> JobFilter:
    """The filter.

    Raises:
        BadFilter: see there.
    """
    values = {name: _READERS[name](name, text) for name, text in given.items() if text is not None}
    return JobFilter(**values)


def position_of(place: str | None) -> str | None:
    """Where a list goes on.

    Raises:
        Refused: `invalid-cursor`.
    """
    if place is not None and not is_job_id(place):
        detail = "The cursor does not belong to this list; hand back next_cursor as it is given."
        raise Refused("invalid-cursor", detail)
    return place


def _name(name: str, text: str) -> str:
    if not text or "\0" in text:
        raise BadFilter(name, "This is no name.")
    return text


def _instant(name: str, text: str) -> InstantMs:
    # Seconds from now, which a client may write for a moment to come, are no past.
    moment = parse_moment(text, 0) if "T" in text.upper() else None
    if moment is None or moment < 0:
        raise BadFilter(name, "This must be an instant as RFC 3339 has it.")
    return moment


def _one_of(kind: type[Status] | type[ErrorCategory]) -> Callable[[str, str], Status | ErrorCategory]:
    def read(name: str, text: str) -> Status | ErrorCategory:
        try:
            return kind(text)
        except ValueError:
            raise BadFilter(name, f"This must be one of {', '.join(kind)}.") from None

    return read


_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "tenant": _name,
    "operation": _name,
    "status": _one_of(Status),
    "category": _one_of(ErrorCategory),
    **dict.fromkeys(("created_since", "created_until", "finished_since", "finished_until"), _instant),
}
