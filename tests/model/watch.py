"""What a rescuer may know: which leases showed no life while it looked, on its own monotonic clock."""

from collections.abc import Sequence

from coatcheck.testing.model_state import ModelJob


class Watch:
    """A rescuer's memory between its looks. One that was away for long trusts nothing it saw before."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._seen: dict[tuple[str, int, int], float] = {}
        self._looked_s = 0.0

    def silent(self, running: Sequence[ModelJob], now_s: float) -> list[ModelJob]:
        """The jobs whose leases were seen to stand still for a lease time."""
        if now_s - self._looked_s > self._lease_s / 2:
            self._seen.clear()
        self._looked_s = now_s
        keys = [(job.record.id, job.record.attempt, job.beats) for job in running]
        self._seen = {key: self._seen.get(key, now_s) for key in keys}
        return [job for job, key in zip(running, keys, strict=True) if now_s - self._seen[key] >= self._lease_s]
