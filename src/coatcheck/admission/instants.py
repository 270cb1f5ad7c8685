"""Moments as clients write them: an RFC 3339 instant, or seconds from now."""

import re
from datetime import date

from coatcheck.core import limits
from coatcheck.core.job import InstantMs

_INSTANT = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[Tt](?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d):"
    r"(?P<second>[0-5]\d|60)(?:\.(?P<fraction>\d+))?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<offset_hour>[01]\d|2[0-3]):(?P<offset_minute>[0-5]\d))",
    re.ASCII,
)
_SECONDS = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_UNIX_EPOCH_DAY = date(1970, 1, 1).toordinal()
_GREGORIAN_CYCLE_YEARS, _GREGORIAN_CYCLE_DAYS = 400, 146_097
_DAY_S = 86_400
# RFC 3339, section 5.7: a second 60 stands at the end of a month in UTC, so far only of June and December.
_LEAP_SECOND_DAYS = frozenset({(7, 1), (1, 1)})


def parse_moment(text: str, now: InstantMs) -> InstantMs | None:
    """The moment in ms, or None where the text is neither an instant nor seconds, or lies after the year 9999."""
    moment = _from_seconds(text, now) if _SECONDS.fullmatch(text) else _from_instant(text)
    return None if moment is None or moment > limits.INSTANT_MS_MAX else moment


def _from_seconds(text: str, now: InstantMs) -> InstantMs | None:
    seconds = float(text)
    return now + round(seconds * 1000) if seconds <= limits.INSTANT_MS_MAX else None


def _from_instant(text: str) -> InstantMs | None:
    match = _INSTANT.fullmatch(text)
    if match is None:
        return None
    days = _days_since_epoch(int(match["year"]), int(match["month"]), int(match["day"]))
    if days is None:
        return None
    offset_s = int(match["offset_hour"] or 0) * 3600 + int(match["offset_minute"] or 0) * 60
    day_s = int(match["hour"]) * 3600 + int(match["minute"]) * 60 + int(match["second"])
    seconds = days * _DAY_S + day_s - (-offset_s if match["sign"] == "-" else offset_s)
    if match["second"] == "60" and not _begins_after_leap_second(seconds):
        return None
    return seconds * 1000 + int((match["fraction"] or "")[:3].ljust(3, "0"))


def _days_since_epoch(year: int, month: int, day: int) -> int | None:
    """None where the month has no such day. The year 0, which Python's date does not know, is one cycle before 400."""
    is_year_0 = year == 0
    try:
        ordinal = date(_GREGORIAN_CYCLE_YEARS if is_year_0 else year, month, day).toordinal()
    except ValueError:
        return None
    return ordinal - _UNIX_EPOCH_DAY - (_GREGORIAN_CYCLE_DAYS if is_year_0 else 0)


def _begins_after_leap_second(seconds: int) -> bool:
    days, rest_s = divmod(seconds, _DAY_S)
    ordinal = days + _UNIX_EPOCH_DAY
    if rest_s != 0 or ordinal < 1:
        return False
    if ordinal > date.max.toordinal():
        return True
    next_day = date.fromordinal(ordinal)
    return (next_day.month, next_day.day) in _LEAP_SECOND_DAYS
