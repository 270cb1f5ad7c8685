"""`coatcheck db`: the store itself, for its operator."""

import asyncio
from collections.abc import Mapping
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from coatcheck.app import App
from coatcheck.cli.flags import with_settings
from coatcheck.cli.job_filters import BadOption
from coatcheck.declaration import DeclarationError
from coatcheck.operating import Copied, Copy, open_database
from coatcheck.setting_values import store_name
from coatcheck.settings import Settings
from coatcheck.store.clock import SystemClock
from coatcheck.store.database import SchemaState
from coatcheck.store.dump import Kind
from coatcheck.store.errors import StoreRefused

EXIT_PENDING = 3
EXIT_NEWER = 4
EXIT_NO_STORE = 5
STORE_SETTINGS = ("store", "postgres_pooler")

AppName = Annotated[
    str | None, typer.Option("--app", help="The app's name, for a store that does not exist yet.", metavar="NAME")
]

From = Annotated[str, typer.Option("--from", help="The store to copy; no process may use it.", metavar="URL")]
To = Annotated[str, typer.Option("--to", help="Where to: a store that does not exist yet.", metavar="URL")]

db = typer.Typer(help="Look at a store, bring it up to date, and copy it into another.")

_COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())


class _Shown:
    """The progress of a copy: each row is counted when it is written and when it is read back."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("Opening")
        self._left = 0

    def begin(self, counts: Mapping[Kind, int]) -> None:
        self._left = sum(counts.values())
        self._progress.update(self._task, total=2 * self._left)

    def advance(self, kind: Kind, rows: int) -> None:
        verb = "Copying" if self._left > 0 else "Comparing"
        self._left -= rows
        self._progress.update(self._task, advance=rows, description=f"{verb} {kind}")


def status(*, settings: Settings) -> None:
    """Show which store it is, whose, and whether its schema is this version's. Nothing is written.

    The exit code is 0 if it is, 3 if an upgrade is pending, 4 if a newer version has been here, so that this one would
    not start, and 5 if there is no store yet.

    Example:

      coatcheck db status --store sqlite:////srv/jobs/shop.db
    """
    state = asyncio.run(open_database(settings).read_schema())
    for name, value in (
        ("Store", settings.store_name),
        ("App", state.app or "none yet"),
        ("Schema", f"{state.number} (this version knows {state.newest})" if state.app else "none yet"),
        ("Upgrade", _advice(state)),
    ):
        typer.echo(f"{name:<9}{value}")
    raise typer.Exit(_exit_code(state))


def upgrade(app: AppName = None, *, settings: Settings) -> None:
    """Bring a store's schema up to this version's, one numbered migration after the other, and tell what was done.

    Only one process does so at a time. One that is killed has left whole migrations; the next goes on from there.
    Processes that serve from the store may go on meanwhile.

    Examples:

      coatcheck db upgrade --store sqlite:////srv/jobs/shop.db

      coatcheck db upgrade --store postgresql://owner@db.internal/jobs --app bookshop
    """
    done, state = asyncio.run(_upgrade(settings, app))
    steps = f"Migration{'s' * (len(done) > 1)} {', '.join(map(str, done))} done" if done else "Nothing to do"
    typer.echo(f"{steps}: {settings.store_name} of app {state.app} has schema {state.number}.")


def copy(source: From, target: To) -> None:
    """Copy a whole store into another one, on SQLite or PostgreSQL, and compare them. The old one stays as it is.

    Every process of both must be stopped; that is checked. The new store is made, or was never used. All is copied or
    nothing is, so what was broken off is simply run again. PostgreSQL is to be reached without a pooler.

    Example:

      coatcheck db copy --from sqlite:////srv/jobs/shop.db --to postgresql://owner@db.internal/jobs
    """
    # One transaction from end to end has no use for a pooler.
    old, new = (Settings(store=url, postgres_pooler=None) for url in (source, target))
    clock = SystemClock()
    began_s = clock.monotonic_s()
    terminal = Console(stderr=True)
    with Progress(*_COLUMNS, console=terminal, transient=True, disable=not terminal.is_terminal) as progress:
        shown = _Shown(progress)
        copied = asyncio.run(Copy(old, new, shown.begin, shown.advance).run())
    took_s = clock.monotonic_s() - began_s
    rows = sum(contents.rows for contents in copied.contents.values())
    console = Console(highlight=False, soft_wrap=True)
    console.print(_table(copied))
    console.print(
        f"\nCopied app {copied.app}: {rows:,} rows in {took_s:.1f} s, compared and committed. Start its processes on"
        f" {store_name(target)}, and put {store_name(source)} away: both hold the same jobs now."
    )


def _name_of(app: str) -> str:
    try:
        return App(app).name
    except DeclarationError as error:
        raise BadOption(f"--app takes the app's name, not where it is. {error}") from None


async def _upgrade(settings: Settings, app: str | None) -> tuple[list[int], SchemaState]:
    database = open_database(settings)
    before = await database.read_schema()
    owner = before.app if app is None else _name_of(app)
    if owner is None:
        raise StoreRefused(f"There is no store at {settings.store_name} yet; name its app with --app to make it.")
    done = list(await database.upgrade(owner))
    return done, await database.read_schema()


def _advice(state: SchemaState) -> str:
    if state.app is None:
        return "the first start makes it, or `coatcheck db upgrade --app NAME`"
    if state.is_newer:
        return "not possible: a newer version has been here, and this one will not start"
    return f"pending, from {state.number} to {state.newest}" if state.is_pending else "none pending"


def _exit_code(state: SchemaState) -> int:
    if state.app is None:
        return EXIT_NO_STORE
    if state.is_newer:
        return EXIT_NEWER
    return EXIT_PENDING if state.is_pending else 0


def _table(copied: Copied) -> Table:
    table = Table("what", "rows", "digest", box=None, padding=(0, 2, 0, 0))
    for kind, contents in copied.contents.items():
        table.add_row(kind.value, f"{contents.rows:,}", contents.digest)
    return table


for _command in (status, upgrade):
    db.command()(with_settings(_command, STORE_SETTINGS))
db.command()(copy)
