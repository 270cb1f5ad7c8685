"""Where the store of a scene lies: the same deaths are died on each engine."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeAlias

from faults.place_postgres import PostgresPlace
from faults.place_sqlite import SqlitePlace
from harness.postgres_server import shared_server


class Place(Protocol):
    """One empty store. `lacks`: the fault points that its engine does not have, each with the reason."""

    @property
    def name(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def lacks(self) -> Mapping[str, str]: ...

    @property
    def has_doubtful_commits(self) -> bool:
        """See Rules."""

    @property
    def migration_steps(self) -> int:
        """How many statements make the schema."""

    def count_leftovers(self) -> dict[str, int]:
        """Rows that only open jobs have, and rows of jobs that are gone, by name, counted behind the interface."""

    def count_held(self) -> int:
        """Turns in which no job may start, as a claim found."""

    def count_damage(self) -> dict[str, int]:
        """What the engine's own check finds wrong with its files."""


MakePlace: TypeAlias = Callable[[Path], Place]

LACKS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {SqlitePlace.name: SqlitePlace.lacks, PostgresPlace.name: PostgresPlace.lacks}
)


def sqlite(folder: Path) -> Place:
    """The file of this folder."""
    return SqlitePlace(folder)


def postgres(_folder: Path) -> Place:
    """A database of the server that the tests of this process share."""
    return PostgresPlace(shared_server())


ENGINES: Mapping[str, MakePlace] = MappingProxyType({SqlitePlace.name: sqlite, PostgresPlace.name: postgres})
