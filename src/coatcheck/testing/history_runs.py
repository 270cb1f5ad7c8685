"""What handlers write: a line when an attempt starts, around each of its effects, and when it ends by itself.

An attempt whose process dies leaves a start without an end. Lines are written in the process that runs the handler.
"""

import os
from pathlib import Path
from typing import Any

from coatcheck.store.clock import Clock
from coatcheck.testing.history import HistoryWriter, Mark

RUN = "run"
EFFECT = "effect"


class RunLog:
    """The lines of one attempt. The start is written when it is made; `returned` or `raised` ends it."""

    def __init__(self, path: Path, job_id: str, attempt: int, clock: Clock | None = None) -> None:
        self._writer = HistoryWriter(path, f"handler-{os.getpid()}", clock)
        self._job_id = job_id
        self._attempt = attempt
        self._write(Mark.INVOKE, RUN)

    def returned(self) -> None:
        """The handler is about to return."""
        self._write(Mark.OK, RUN)
        self._writer.close()

    def raised(self, reason: str) -> None:
        """The handler is about to raise."""
        self._write(Mark.FAIL, RUN, reason=reason)
        self._writer.close()

    def asks_effect(self, name: str) -> None:
        """The handler is about to ask for an effect."""
        self._write(Mark.INVOKE, EFFECT, name=name)

    def has_effect(self, name: str, value: Any) -> None:
        """The effect stands, recorded with this value."""
        self._write(Mark.OK, EFFECT, name=name, value=value)

    def _write(self, mark: Mark, what: str, **more: Any) -> None:
        self._writer.write(mark, what, job_id=self._job_id, attempt=self._attempt, more=more)
