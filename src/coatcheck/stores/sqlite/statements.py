"""The engine's SQL, one statement in each file, named by its verb."""

import re
from functools import cache
from importlib.resources import files

_PACKAGE = files("coatcheck.stores.sqlite")
_ONE_ROW = re.compile(r"(.*\nVALUES )(\([?, ]+\))(.*)", re.DOTALL)


def sql(name: str) -> str:
    """The statement of sql/{name}.sql."""
    return _all()[name]


@cache
def sql_for_rows(name: str, count: int) -> str:
    """The statement of sql/{name}.sql, which names one row of `?`, for `count` rows."""
    match = _ONE_ROW.fullmatch(sql(name))
    assert match is not None, f"{name} names one row of question marks"
    head, row, tail = match.groups()
    # Without blanks: apsw keeps no statement of more than 16 KiB.
    return head + ",".join([row.replace(" ", "")] * count) + tail


@cache
def _all() -> dict[str, str]:
    # Read at once, when the store is opened: later there may be no file descriptor left to read one with.
    files_of_sql = (file for file in (_PACKAGE / "sql").iterdir() if file.name.endswith(".sql"))
    return {file.name.removesuffix(".sql"): file.read_text(encoding="utf-8") for file in files_of_sql}


@cache
def migrations() -> list[tuple[int, list[str]]]:
    """Each migration's number with its statements, in order."""
    folders = sorted(
        (folder for folder in (_PACKAGE / "migrations").iterdir() if folder.is_dir()), key=lambda f: f.name
    )
    return [
        (
            int(folder.name),
            [file.read_text(encoding="utf-8") for file in sorted(folder.iterdir(), key=lambda f: f.name)],
        )
        for folder in folders
        if folder.name.isdigit()
    ]
