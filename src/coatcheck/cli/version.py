"""`coatcheck version`: what is running here."""

import platform
from importlib.metadata import PackageNotFoundError, version

import apsw
import typer


def coatcheck_version() -> str:
    """The installed version, or that there is none: a checkout on the path."""
    try:
        return version("coatcheck")
    except PackageNotFoundError:
        return "from source"


def print_version() -> None:
    """Print the versions of Coatcheck, Python and SQLite.

    Example:

      coatcheck version
    """
    sqlite = apsw.sqlite_lib_version()
    typer.echo(f"coatcheck {coatcheck_version()} (Python {platform.python_version()}, SQLite {sqlite})")
