"""`coatcheck check`: would it start? Without starting it."""

import asyncio

from rich.console import Console
from rich.table import Table

from coatcheck.app import App, Operation
from coatcheck.cli.loading import load_app_here
from coatcheck.cli.serve import AppRef
from coatcheck.runtime import Runtime
from coatcheck.settings import Settings


def check(app_ref: AppRef, *, settings: Settings) -> None:
    """Check an app, its settings and its store, and show the operations. Nothing is started.

    A store that does not exist yet is not made. One that does is opened, and brought up to this version's schema.

    Example:

      coatcheck check bookshop:app --store sqlite:////srv/jobs/shop.db
    """
    app = load_app_here(app_ref)
    store = asyncio.run(_store_state(Runtime(app, settings, app_ref)))
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"App [bold]{app.name}[/bold] is fine. Settings are fine. {store}")
    console.print(_table(app))


async def _store_state(runtime: Runtime) -> str:
    path = runtime.settings.store_path
    if path is not None and not path.exists():
        return f"The store {path} will be made at the first start."
    await runtime.check_store()
    return f"The store {path or runtime.settings.store_name} is fine."


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
