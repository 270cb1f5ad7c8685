"""`python -m faults.crash_bugs BUG serve …`: the real command line, with a bug planted that only a crash shows."""

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import mock

from coatcheck.cli.main import main
from coatcheck.core.events import EventType
from coatcheck.core.job import JobRecord
from coatcheck.stores.sqlite.transaction import Transaction
from coatcheck.stores.sqlite.writer import Member, Writer

ANSWER_S = 1.0


def acknowledge_before_commit() -> None:
    """Answers leave before their commit, which they do not wait for."""
    transact = Writer._transact

    def transact_late(self: Writer, batch: Sequence[Member], run: Callable[..., None]) -> Any:
        def run_and_answer(transaction: Transaction, members: Sequence[Member]) -> None:
            run(transaction, members)
            self._loop.call_soon_threadsafe(self._deliver, members, set())
            threading.Event().wait(ANSWER_S)

        return transact(self, batch, run_and_answer)

    mock.patch.object(Writer, "_transact", transact_late).start()


def tell_after_commit() -> None:
    """Events go into a commit of their own, after that of what they tell."""
    transact, tell = Writer._transact, Transaction.tell
    untold: list[tuple[EventType, Sequence[JobRecord]]] = []

    def remember(self: Transaction, event: EventType, jobs: Sequence[JobRecord]) -> None:
        untold.append((event, jobs))

    def transact_twice(self: Writer, batch: Sequence[Member], run: Callable[..., None]) -> Any:
        hints = transact(self, batch, run)
        events = list(untold)
        untold.clear()

        def tell_all(transaction: Transaction, members: Sequence[Member]) -> None:
            for event, jobs in events:
                tell(transaction, event, jobs)

        return hints | transact(self, batch, tell_all) if events else hints

    mock.patch.object(Transaction, "tell", remember).start()
    mock.patch.object(Writer, "_transact", transact_twice).start()


BUGS: Mapping[str, Callable[[], None]] = {bug.__name__: bug for bug in (acknowledge_before_commit, tell_after_commit)}

if __name__ == "__main__":
    BUGS[sys.argv.pop(1)]()
    main()
