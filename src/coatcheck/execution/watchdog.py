"""Notices a loop that no longer turns, and where it stands. A thread of its own, asleep while the loop has no work."""

import asyncio
import linecache
import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from types import FrameType

BLOCKED_S = 1.0
_LIBRARIES = tuple(
    os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_OWN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


class Watchdog:
    """Watches the loop of the thread that makes it.

    `on_blocked` is called on the watching thread, once each time the loop stands still for BLOCKED_S, with the task
    that holds it and the place in its code.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_blocked: "OnBlocked") -> None:
        self._loop = loop
        self._loop_thread_id = threading.get_ident()
        self._on_blocked = on_blocked
        self._is_busy = threading.Event()
        self._has_turned = threading.Event()

    def start(self) -> None:
        """Begin to watch."""
        threading.Thread(target=self._watch, name="coatcheck-watchdog", daemon=True).start()

    def set_busy(self, is_busy: bool) -> None:
        """Whether there is anything on the loop that could block it."""
        if is_busy:
            self._is_busy.set()
        else:
            self._is_busy.clear()

    def _watch(self) -> None:
        while True:
            self._is_busy.wait()
            self._has_turned.clear()
            try:
                self._loop.call_soon_threadsafe(self._has_turned.set)
            except RuntimeError:
                return
            if not self._has_turned.wait(BLOCKED_S):
                self._on_blocked(asyncio.current_task(self._loop), self._place())
                self._has_turned.wait()
            # A pause between two looks; nobody ever sets this event of its own.
            threading.Event().wait(BLOCKED_S / 2)

    def _place(self) -> str:
        frame = sys._current_frames().get(self._loop_thread_id)
        return "unknown" if frame is None else place_of(frame)


OnBlocked = Callable[["asyncio.Task[object] | None", str], None]


def place_of(innermost: FrameType) -> str:
    """File, line, function and source of the innermost frame that is neither a library's nor ours, if there is one."""
    frame: FrameType | None = innermost
    while frame is not None and frame.f_code.co_filename.startswith((*_LIBRARIES, _OWN, "<")):
        frame = frame.f_back
    shown = frame or innermost
    path, line = shown.f_code.co_filename, shown.f_lineno
    source = linecache.getline(path, line).strip()
    return f"{path}:{line} in {shown.f_code.co_name}: {source}"
