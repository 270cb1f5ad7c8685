"""The one switch between serving and shutting down, which every request and stream looks at."""

from collections.abc import Callable


class DrainState:
    """Begins once and never ends. `on_begin` callbacks run in the thread that begins it, which owns the event loop."""

    def __init__(self) -> None:
        self.has_begun = False
        self._callbacks: list[Callable[[], None]] = []

    def on_begin(self, callback: Callable[[], None]) -> None:
        """Call `callback` when draining begins; at once if it has begun."""
        if self.has_begun:
            callback()
        else:
            self._callbacks.append(callback)

    def begin(self) -> None:
        """Stop accepting, end waits and streams. A second call changes nothing."""
        if self.has_begun:
            return
        self.has_begun = True
        for callback in self._callbacks:
            callback()
