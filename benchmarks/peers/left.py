"""Tells ten times a second how many jobs a peer's store holds that are not finished: an instant and a number a line.

Arguments: postgres URL QUERY, sqlite PATH QUERY, or valkey URL COMMAND KEY [COMMAND KEY]..., of which the sum is told.
"""

import importlib
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence

_EVERY_S = 0.1


def counter(kind: str, store: str, what: Sequence[str]) -> Callable[[], int]:
    """A function that counts. Each environment has only the clients that its peers need."""
    if kind == "postgres":
        postgres = importlib.import_module("psycopg").connect(store, autocommit=True)
        return lambda: int(postgres.execute(what[0]).fetchone()[0])
    if kind == "sqlite":
        path = store.removeprefix("sqlite:///")
        sqlite = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
        return lambda: int(sqlite.execute(what[0]).fetchone()[0])
    valkey = importlib.import_module("redis").Redis.from_url(store)
    pairs = list(zip(what[::2], what[1::2], strict=True))
    return lambda: sum(int(valkey.execute_command(command, key)) for command, key in pairs)


def main(kind: str, store: str, what: Sequence[str]) -> None:
    count = counter(kind, store, what)
    while True:
        number = count()
        sys.stdout.write(f"{time.monotonic():.4f} {number}\n")
        sys.stdout.flush()
        time.sleep(_EVERY_S)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
