"""What a tenant is told whose queue has no room: which limit it met, and when there is likely to be room again."""

from coatcheck.core.problems import Refused
from coatcheck.core.quotas import ALL
from coatcheck.store.records import QueueFull


def jobs_too_many(full: QueueFull) -> float:
    """How many of the queued jobs have to start before one more is let in; infinite where none ever is."""
    return full.queued + 1 - full.limit.value if full.limit.value >= 1 else float("inf")


def queue_full(full: QueueFull, retry_after_s: int) -> Refused:
    """The refusal, with advice in whole seconds."""
    operation, most = full.limit.key[2], int(full.limit.value)
    where, name = ("", "queued") if operation == ALL else (f" in {operation!r}", f"queued-{operation}")
    detail = f"{full.queued} jobs of this tenant are queued{where}, and no more than {most} may be."
    return too_many_queued(detail, name, most, retry_after_s)


def too_many_queued(detail: str, name: str, most: int, retry_after_s: int) -> Refused:
    """The refusal of one that has the most jobs queued already that it may have. `name`: what its quota is called."""
    fields = [
        ("Retry-After", str(retry_after_s)),
        # There is no unit for jobs: one that is queued is a request not yet dealt with.
        ("RateLimit-Policy", f'"{name}";q={most};qu="concurrent-requests"'),
        ("RateLimit", f'"{name}";r=0;t={retry_after_s}'),
    ]
    return Refused("too-many-queued", detail, headers=fields)
