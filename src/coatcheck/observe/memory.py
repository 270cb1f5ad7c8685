"""How much memory this process may have: what the operating system, its limits and its control group leave it."""

import os
import resource
from pathlib import Path

_GROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_bytes_max() -> int:
    """The least of all limits, in bytes."""
    soft = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([physical, *(limit for limit in soft if limit != resource.RLIM_INFINITY), *_group_limits()])


def _group_limits() -> list[int]:
    limits = []
    for path in _GROUP_LIMITS:
        try:
            text = path.read_text(encoding="ascii").strip()
        except OSError:
            continue
        # A group without a limit says "max", or in the older form a number above all memory there is.
        if text.isdigit():
            limits.append(int(text))
    return limits
