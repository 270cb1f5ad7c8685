"""The folder through which a test and the handlers it started talk to each other."""

from pathlib import Path
from typing import Any

from coatcheck.testing.waiting import wait_until
from harness.steps import ENDS, GO, PROGRESS, STARTS


class Stage:
    """Sees the starts and ends of handlers, and tells them to go on."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder

    def task(self, *plan: str, **more: Any) -> dict[str, Any]:
        """A request whose attempts do these steps on this stage."""
        return {"plan": list(plan), "folder": str(self.folder), **more}

    def go(self) -> None:
        """Let every handler that waits go on."""
        (self.folder / GO).touch()

    def tell_progress(self, done: int, total: int, message: str) -> None:
        """Have a handler of the step `progress` report this."""
        with (self.folder / PROGRESS).open("a") as file:
            file.write(f"{done} {total} {message}\n")

    @property
    def starts(self) -> list[int]:
        """The attempt numbers of all starts so far."""
        return [int(line.split()[0]) for line in self.lines(STARTS)]

    @property
    def pids(self) -> list[int]:
        """The processes of all starts so far."""
        return [int(line.split()[1]) for line in self.lines(STARTS)]

    @property
    def ends(self) -> list[str]:
        """How handlers ended by themselves so far."""
        return self.lines(ENDS)

    def lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def wait_for_starts(self, count: int = 1, timeout_s: float = 20.0) -> None:
        wait_until(lambda: len(self.starts) >= count, f"{count} starts", timeout_s)
