"""Figures as words, for the table and for the page."""

from collections.abc import Sequence

_WHOLE_FROM = 100
_FACTOR_FROM = 1.5


def number(value: float) -> str:
    """As many digits as a measurement is worth."""
    return f"{value:,.0f}" if abs(value) >= _WHOLE_FROM else f"{value:.1f}"


def measured(value: float, unit: str) -> str:
    return f"{number(value)}{unit}" if unit == "/s" else f"{number(value)} {unit}"


def spread(values: Sequence[float]) -> str:
    """From the least to the most, where there is more than one."""
    return f"{number(min(values))} to {number(max(values))}" if len(values) > 1 else ""


def ratio(value: float | None) -> str:
    """A share below one and a half, a factor from there on."""
    if value is None:
        return ""
    return f"{value:.1f} x" if value >= _FACTOR_FROM else f"{value:.0%}"
