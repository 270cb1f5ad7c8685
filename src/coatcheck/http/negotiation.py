"""Which form of an answer the client accepts (RFC 9110, section 12.5.1). Malformed parts are as if not there."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache

from coatcheck.admission.grammar import PARAMETERS, TCHARS, elements
from coatcheck.core import limits
from coatcheck.core.problems import Refused

_RANGE = re.compile(rf"[ \t]*(?P<range>{TCHARS}/{TCHARS})(?P<parameters>{PARAMETERS})[ \t]*")
_WEIGHT = re.compile(r";[ \t]*q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)(?=[ \t]*(?:;|$))", re.IGNORECASE)
_ANY_WEIGHT = re.compile(r";[ \t]*q=", re.IGNORECASE)

_HTML = "text/html"
_PLAIN = frozenset({b"", b"*/*", b"application/json"})


class JobForm(Enum):
    """The two forms of a job."""

    JSON = "application/json"
    STREAM = "text/event-stream"


def choose_job_form(headers: Mapping[bytes, Sequence[bytes]]) -> JobForm:
    """The form with the higher weight; between equals the one named more exactly, then JSON.

    Raises:
        Refused: `not-acceptable`.
    """
    ranges = _ranges(headers)
    if not ranges:
        return JobForm.JSON
    weights = {form: _weight(ranges, form.value) for form in JobForm}
    best = max(JobForm, key=lambda form: weights[form])
    if weights[best][0] == 0:
        raise Refused("not-acceptable", "This resource is application/json or, as a live stream, text/event-stream.")
    return best


def require_json_accepted(headers: Mapping[bytes, Sequence[bytes]]) -> None:
    """Return where the client takes JSON.

    Raises:
        Refused: `not-acceptable`.
    """
    ranges = _ranges(headers)
    if ranges and _weight(ranges, JobForm.JSON.value)[0] == 0:
        raise Refused("not-acceptable", "This resource is application/json.")


def prefers_json(accept: Sequence[bytes]) -> bool:
    """Whether JSON is named and weighs more than HTML, or as much and stands before it: what has pages is a page."""
    value = b",".join(accept)
    ranges = _read(value) if len(value) <= limits.HEADER_VALUE_BYTES_MAX else {}
    json_weight, html_weight = ranges.get(JobForm.JSON.value, 0.0), ranges.get(_HTML, 0.0)
    if not json_weight or json_weight != html_weight:
        return json_weight > html_weight
    names = list(ranges)
    return names.index(JobForm.JSON.value) < names.index(_HTML)


def _ranges(headers: Mapping[bytes, Sequence[bytes]]) -> Mapping[str, float] | None:
    values = headers.get(b"accept")
    if not values:
        return None
    accept = b",".join(values)
    if accept in _PLAIN or len(accept) > limits.HEADER_VALUE_BYTES_MAX:
        return None
    return _read(accept)


@lru_cache(maxsize=256)
def _read(accept: bytes) -> Mapping[str, float]:
    """The weight of each media range, in the order they stand in."""
    ranges: dict[str, float] = {}
    for element in elements(accept.decode("latin-1")):
        match = _RANGE.fullmatch(element)
        if match is None:
            continue
        parameters = match["parameters"]
        weight = _WEIGHT.search(parameters)
        if weight is None and _ANY_WEIGHT.search(parameters):
            continue
        name = match["range"].lower()
        ranges[name] = max(float(weight[1]) if weight else 1.0, ranges.get(name, 0.0))
    return ranges


def _weight(ranges: Mapping[str, float], media_type: str) -> tuple[float, int]:
    """The weight of a media type and how exactly it is named: 2 by itself, 1 by its main type, 0 by `*/*` or not."""
    for exactness, name in ((2, media_type), (1, media_type.partition("/")[0] + "/*"), (0, "*/*")):
        if name in ranges:
            return ranges[name], exactness
    return 0.0, 0
