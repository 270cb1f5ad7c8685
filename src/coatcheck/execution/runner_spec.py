"""What both sides know of a runner process: how it is started, with what, and which signals it leaves to its parent."""

import signal
from dataclasses import dataclass

from coatcheck.observe.logs import LogFormat

GROUP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})


@dataclass(frozen=True, slots=True)
class RunnerSpec:
    """A kind of runner. A solo one runs one job at a time; `import_timeout_s` bounds the import of the app."""

    app_ref: str
    concurrency: int
    is_solo: bool
    import_timeout_s: float
    log_format: LogFormat
    log_level: str


@dataclass(frozen=True, slots=True)
class RunnerArguments:
    """What one runner is handed on its command line, as JSON."""

    channel_fd: int
    notices_fd: int
    parent_pid: int
    app_ref: str
    concurrency: int
    log_format: LogFormat
    log_level: str
