"""What operators do to a store that they do not serve from: look at it, bring it up to date, copy it into another."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from coatcheck.app import App
from coatcheck.runtime import Runtime, fault_point_of, load_engine
from coatcheck.setting_values import sqlite_path, store_name
from coatcheck.settings import Settings
from coatcheck.store.database import StoreDatabase
from coatcheck.store.dump import Dump, Kind, Load, Record
from coatcheck.store.errors import StoreRefused
from coatcheck.stores.sqlite.database import SqliteDatabase

DIGEST_BYTES = 16
NO_APP_REF = "-"

OnRows: TypeAlias = Callable[[Kind, int], None]
"""Told of each batch that was written or read back: its kind and its rows."""


def open_database(settings: Settings) -> StoreDatabase:
    """What `store` names.

    Raises:
        StartRefused: its driver is not installed.
    """
    fault_point = fault_point_of(settings)
    path = sqlite_path(settings.store)
    if path is not None:
        return SqliteDatabase(path, fault_point)
    is_pooled = settings.postgres_pooler is not None
    database: StoreDatabase = load_engine("postgres", "database", "PostgreSQL").PostgresDatabase(
        settings.store, is_pooled, fault_point
    )
    return database


@asynccontextmanager
async def open_store(settings: Settings, app: App | None = None) -> AsyncIterator[Runtime]:
    """A runtime with nothing but its store open, for whichever app owns that where none is given.

    Raises:
        StoreRefused: there is no store, or it must not be used.
        StoreUnavailable: it cannot be reached.
        StartRefused: its driver is not installed.
    """
    if app is None:
        owner = (await open_database(settings).read_schema()).app
        if owner is None:
            raise StoreRefused(f"There is no store at {settings.store_name}.")
        app = App(owner)
    runtime = Runtime(app, settings, NO_APP_REF)
    await runtime.store.open()
    try:
        yield runtime
    finally:
        await runtime.store.close()


@dataclass(frozen=True, slots=True)
class Contents:
    """What there is of one kind: the rows, and a digest of them in the order of their key."""

    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy did."""

    app: str
    contents: Mapping[Kind, Contents]


class Copy:
    """One store's rows on their way into another, all of them or none.

    Args:
        source: whose store it is stays; nothing is written to it.
        target: not there yet, or never used.
        on_count: told how many rows there are of each kind, before the first is copied.
        on_rows: see OnRows; each row is told of twice.
    """

    def __init__(
        self, source: Settings, target: Settings, on_count: Callable[[Mapping[Kind, int]], None], on_rows: OnRows
    ) -> None:
        self._source = source
        self._target = target
        self._on_count = on_count
        self._on_rows = on_rows

    async def run(self) -> Copied:
        """Copy, compare, and only then commit.

        Raises:
            StoreRefused: one of them must not be copied from or to; nothing was copied.
            StoreUnavailable: one of them cannot be reached; nothing was copied.
            StartRefused: a driver is not installed.
        """
        _refuse_same(self._source.store, self._target.store)
        source, target = open_database(self._source), open_database(self._target)
        app = await _owner(source, store_name(self._source.store))
        async with source.open_dump() as dump:
            self._on_count(await dump.count())
            async with target.open_load(app) as load:
                contents = {kind: await self._copy(kind, dump, load) for kind in Kind}
                await load.settle()
                for kind, copied in contents.items():
                    await self._compare(kind, copied, load)
        return Copied(app, contents)

    async def _copy(self, kind: Kind, dump: Dump, load: Load) -> Contents:
        counting = _Counting()
        async for records in dump.read(kind):
            await load.write(kind, records)
            await self._passed(kind, records, counting)
        return counting.contents()

    async def _compare(self, kind: Kind, copied: Contents, load: Load) -> None:
        counting = _Counting()
        async for records in load.read(kind):
            await self._passed(kind, records, counting)
        if counting.contents() != copied:
            raise StoreRefused(
                f"{store_name(self._target.store)} gave back other rows of {kind} than it took; nothing was copied."
            )

    async def _passed(self, kind: Kind, records: Sequence[Record], counting: "_Counting") -> None:
        counting.add(records)
        self._on_rows(kind, len(records))
        # An engine that never waits would never let a Ctrl-C through.
        await asyncio.sleep(0)


class _Counting:
    """Rows as they pass."""

    def __init__(self) -> None:
        self._rows = 0
        self._digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self._encoder = msgspec.msgpack.Encoder()

    def add(self, records: Sequence[Record]) -> None:
        self._rows += len(records)
        for record in records:
            self._digest.update(self._encoder.encode(record))

    def contents(self) -> Contents:
        return Contents(self._rows, self._digest.hexdigest())


def _refuse_same(source: str, target: str) -> None:
    paths = [path.resolve() for path in map(sqlite_path, (source, target)) if path is not None]
    if source == target or (len(paths) == 2 and paths[0] == paths[1]):
        raise StoreRefused(f"{store_name(source)} cannot be copied into itself; name another store with --to.")


async def _owner(source: StoreDatabase, name: str) -> str:
    """The app of a store that is fit to be copied."""
    state = await source.read_schema()
    if state.app is None:
        raise StoreRefused(f"There is no store at {name}.")
    if state.is_newer:
        raise StoreRefused(f"{name} has schema {state.number}, this build knows {state.newest}; use a newer coatcheck.")
    if state.is_pending:
        raise StoreRefused(
            f"{name} has schema {state.number}, and only schema {state.newest} is copied; run `coatcheck db upgrade` on"
            " it first."
        )
    return state.app
