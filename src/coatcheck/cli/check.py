"""`coatcheck check`: would it start? Without starting it."""

import asyncio

from rich.console import Console
from rich.table import Table

from coatcheck.app import App, Operation
from coatcheck.cli.loading import load_app_here
from coatcheck.cli.serve import AppRef
from coatcheck.operating import open_database
from coatcheck.runtime import Runtime
from coatcheck.settings import Settings
from coatcheck.store.database import SchemaState


def check(app_ref: AppRef, *, settings: Settings) -> None:
    """Check an app, its settings and its store, and show the operations. Nothing is started.

    A store that does not exist yet is not made, and one that does is not changed.

    Example:

      coatcheck check bookshop:app --store sqlite:////srv/jobs/shop.db
    """
    app = load_app_here(app_ref)
    Runtime(app, settings, app_ref)
    store = _store_state(settings, asyncio.run(open_database(settings).examine(app.name)))
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"App [bold]{app.name}[/bold] is fine. Settings are fine. {store}")
    console.print(_table(app))


def _store_state(settings: Settings, state: SchemaState) -> str:
    name = settings.store_path or settings.store_name
    when = "at the first start" if settings.migrate else "by `coatcheck db upgrade`"
    if state.app is None:
        return f"The store {name} will be made {when}."
    if state.is_pending:
        return f"The store {name} is fine, and will be brought from schema {state.number} to {state.newest} {when}."
    return f"The store {name} is fine."


def _table(app: App) -> Table:
    table = Table("operation", "path", "runs in", "attempts", "timeout", "queue limit", box=None, padding=(0, 2, 0, 0))
    for operation in app.operations.values():
        table.add_row(*_cells(operation))
    return table


def _cells(operation: Operation) -> tuple[str, ...]:
    policy = operation.policy
    limits = (_seconds(policy.timeout_s), _seconds(policy.queue_limit_s))
    return (operation.name, operation.path, policy.runs_in.value, str(policy.max_attempts), *limits)


def _seconds(duration_s: float | None) -> str:
    return "none" if duration_s is None else f"{duration_s:g} s"
