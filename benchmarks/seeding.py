"""Files with very many jobs on them, made in seconds: copies of a few jobs that the product itself brought about.

One job is accepted and one is run to its end by a real server. Every row that stands for them is then copied under new
ids and keys, in SQL, so that whatever the engine wrote for one job stands there for each.
"""

import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import apsw

from benchmarks.asking import ask
from benchmarks.places import RUN
from benchmarks.programs import BenchFailed
from benchmarks.servers import Serving, coatcheck, submit
from coatcheck.core.ids import RANDOM_BITS, IdSequence

_BATCH = 50_000
_STEP_US = 10
_ID_COLUMNS = ("id", "job_id", "chain_id")


@dataclass(frozen=True)
class Seed:
    """How many jobs of each kind a file holds."""

    queued: int = 0
    finished: int = 0


def fresh_folder(name: str) -> Path:
    """An empty folder for one measurement."""
    folder = RUN / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def make_store(path: Path, seed: Seed) -> None:
    """A store of this build with so many jobs, the finished ones older than the queued ones."""
    finished_id, queued_id = make_templates(lambda *options: coatcheck(path, *options))
    connection = apsw.Connection(str(path))
    connection.pragma("synchronous", "off")
    connection.pragma("cache_size", -512 * 1024)
    tables = _tables(connection)
    for template, new_ids in batches(seed, finished_id, queued_id):
        _copy(connection, tables, template, new_ids)
    connection.execute("UPDATE turn SET waiting = waiting + ?", (seed.queued,))
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()


def batches(seed: Seed, finished_id: str, queued_id: str) -> Iterator[tuple[str, list[str]]]:
    """The ids of the copies, a batch at a time, each with the id of the job to copy."""
    began_us = time.time_ns() // 1000 - (seed.finished + seed.queued) * _STEP_US
    ids = IdSequence()
    for template, count in ((finished_id, seed.finished), (queued_id, seed.queued)):
        for start in range(0, count, _BATCH):
            size = min(_BATCH, count - start)
            yield template, [ids.next_id(began_us + i * _STEP_US, secrets.randbits(RANDOM_BITS)) for i in range(size)]
            began_us += _BATCH * _STEP_US


def new_key(job_id: str) -> str:
    """An idempotency key for a copy, as random as clients' keys are."""
    return f"{secrets.token_hex(4)}-{job_id}"


def values_of(columns: Sequence[str]) -> list[str]:
    """What stands in each column of a copied row: of the copy `c`, or of the template `t`."""
    return ["c.id" if column in _ID_COLUMNS else "c.key" if column == "key" else f"t.{column}" for column in columns]


def copy_of(seed: Path) -> Path:
    """A copy of a store that nobody has open, in a folder of its own that is emptied before."""
    store = fresh_folder(f"{seed.parent.name}/of-{seed.stem}") / "store.db"
    shutil.copyfile(seed, store)
    return store


def make_templates(serve: Callable[..., AbstractContextManager[Serving]]) -> tuple[str, str]:
    """A finished job and a queued one, of a store that `serve` serves from."""
    with serve() as serving:
        finished = submit(serving.port, "template-finished").header("location")
        waited = ask(serving.port, "GET", finished, {"Prefer": "wait=20"})
        if b'"status":"succeeded"' not in waited.body:
            raise BenchFailed(f"The job to copy did not succeed: {waited.body!r}")
    with serve("--roles", "api") as serving:
        queued = submit(serving.port, "template-queued").header("location")
    return finished.rpartition("/")[2], queued.rpartition("/")[2]


def _tables(connection: apsw.Connection) -> dict[str, list[str]]:
    """Each table that has rows of a job, with its columns."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    columns = {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in names}
    return {name: cols for name, cols in columns.items() if "job_id" in cols or name == "job"}


def _copy(connection: apsw.Connection, tables: dict[str, list[str]], template: str, new_ids: Sequence[str]) -> None:
    """Copy every row of the template once for each new id, in one transaction."""
    connection.execute("BEGIN")
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS copied (id TEXT PRIMARY KEY, key TEXT) WITHOUT ROWID")
    connection.execute("DELETE FROM copied")
    connection.executemany("INSERT INTO copied VALUES (?, ?)", ((new, new_key(new)) for new in new_ids))
    for table, columns in tables.items():
        wanted = [column for column in columns if column != "seq"]
        owner = "id" if table == "job" else "job_id"
        connection.execute(
            f"INSERT INTO {table} ({', '.join(wanted)}) SELECT {', '.join(values_of(wanted))}"  # noqa: S608 - names of our own schema
            f" FROM {table} AS t, copied AS c WHERE t.{owner} = ?",
            (template,),
        )
    connection.execute("COMMIT")
