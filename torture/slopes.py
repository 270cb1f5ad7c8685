"""A straight line through measured points, by least squares."""

from statistics import fmean, linear_regression


class Series:
    """Points of one measure."""

    def __init__(self) -> None:
        self._at_s: list[float] = []
        self._values: list[float] = []

    def add(self, at_s: float, value: float) -> None:
        self._at_s.append(at_s)
        self._values.append(value)

    def mean(self) -> float:
        return fmean(self._values) if self._values else 0.0

    def rise(self) -> float:
        """How much the line rises from the first point to the last."""
        if len(self._values) < 2:
            return 0.0
        return linear_regression(self._at_s, self._values).slope * (self._at_s[-1] - self._at_s[0])
