"""`coatcheck db`: the store itself, for its operator."""

import asyncio
from typing import Annotated

import typer

from coatcheck.cli.flags import with_settings
from coatcheck.operating import open_database
from coatcheck.settings import Settings
from coatcheck.store.database import SchemaState
from coatcheck.store.errors import StoreRefused

EXIT_PENDING = 3
EXIT_NEWER = 4
EXIT_NO_STORE = 5
STORE_SETTINGS = ("store", "postgres_pooler")

AppName = Annotated[
    str | None, typer.Option("--app", help="The app's name, for a store that does not exist yet.", metavar="NAME")
]

db = typer.Typer(help="Look at a store, and bring it up to date.")


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


async def _upgrade(settings: Settings, app: str | None) -> tuple[list[int], SchemaState]:
    database = open_database(settings)
    before = await database.read_schema()
    owner = app or before.app
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


for _command in (status, upgrade):
    db.command()(with_settings(_command, STORE_SETTINGS))
