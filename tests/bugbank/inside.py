"""What stands in a store's file, for what no client is told."""

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw


def look_inside(store: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a query, read beside whoever has the store open."""
    with closing(apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return connection.execute(query, values).fetchall()
