"""Commands that work on a store without serving from it: as whom, and on which."""

import getpass
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from coatcheck.app import App
from coatcheck.operating import open_store
from coatcheck.operators.actor import Actor
from coatcheck.operators.dead_letters import DeadLetters
from coatcheck.operators.jobs import Jobs
from coatcheck.settings import Settings
from coatcheck.store.clock import Clock

NO_SUCH_WORK = "Warning: the store has no job of an operation {!r}; only --app tells whether there is one."
STORE_SETTINGS = ("store", "postgres_pooler")


class Rooms:
    """What an operator may do, on a store that is open."""

    def __init__(self, clock: Clock, jobs: Jobs, dead_letters: DeadLetters) -> None:
        self.clock = clock
        self.jobs = jobs
        self.dead_letters = dead_letters


def operator() -> Actor:
    """Whoever runs the command, by the name the machine knows them by, and the machine's."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "unknown"
    return Actor(f"cli:{name}", socket.gethostname())


@asynccontextmanager
async def opened_rooms(settings: Settings, app: App | None = None) -> AsyncIterator[Rooms]:
    """The rooms on the store that the settings name.

    Raises:
        StoreRefused: there is none, or it must not be used.
        StoreUnavailable: it cannot be reached.
        StartRefused: its driver is not installed.
    """
    async with open_store(settings, app) as runtime:
        jobs = Jobs(runtime.store, runtime.app.policies)
        yield Rooms(runtime.clock, jobs, DeadLetters(runtime.store, jobs, app))
