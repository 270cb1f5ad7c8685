"""`coatcheck operations`: which take work, and which start it."""

from typing import Annotated

import typer

from coatcheck.cli.desk import AppRef, AsJson, at_desk, text_of
from coatcheck.cli.flags import with_settings
from coatcheck.cli.operator import NO_SUCH_WORK, STORE_SETTINGS, operator
from coatcheck.cli.printing import print_fields, print_json, print_rows
from coatcheck.core.tenancy import OperationMode
from coatcheck.http.admin_answers import operation_fields
from coatcheck.operators.modes import Modes, OperationState
from coatcheck.runtime import Runtime
from coatcheck.settings import Settings

Name = Annotated[str, typer.Argument(metavar="OPERATION", help="The operation's name.")]

HEADINGS = ("name", "mode", "queued", "running")

operations = typer.Typer(help="Operations as a whole: hold them back, let them run dry.")


def list_operations(app: AppRef = None, as_json: AsJson = False, *, settings: Settings) -> None:
    """List operations with their modes and how many of their jobs wait and run. Those without jobs need --app.

    Example:

      coatcheck operations list --app bookshop:app
    """
    found = at_desk(settings, lambda runtime: _room(runtime, app).list(), app)
    fields = [operation_fields(state) for state in found]
    if as_json:
        print_json({"operations": fields})
    else:
        print_rows(HEADINGS, [[text_of(one[name]) for name in HEADINGS] for one in fields])


def pause(name: Name, app: AppRef = None, as_json: AsJson = False, *, settings: Settings) -> None:
    """Start no job of an operation. New ones are taken, and what runs goes on. Deadlines and queue limits hold.

    Example:

      coatcheck operations pause reports
    """
    _set(settings, name, OperationMode.PAUSED, app, as_json)


def resume(name: Name, app: AppRef = None, as_json: AsJson = False, *, settings: Settings) -> None:
    """Let an operation take work and start it again.

    Example:

      coatcheck operations resume reports
    """
    _set(settings, name, OperationMode.OPEN, app, as_json)


def drain(name: Name, app: AppRef = None, as_json: AsJson = False, *, settings: Settings) -> None:
    """Take no new work for an operation, and finish what it has. Clients are answered 503 `draining`.

    Example:

      coatcheck operations drain reports
    """
    _set(settings, name, OperationMode.DRAINING, app, as_json)


def _set(settings: Settings, name: str, mode: OperationMode, app: str | None, as_json: bool) -> None:
    async def act(runtime: Runtime) -> OperationState:
        state = await _room(runtime, app).set(name, mode, operator())
        if app is None:
            queues = await runtime.store.measure_queues(runtime.clock.now())
            if name not in {queue.operation for queue in queues}:
                typer.echo(NO_SUCH_WORK.format(name), err=True)
        return state

    fields = operation_fields(at_desk(settings, act, app))
    if as_json:
        print_json(fields)
    else:
        print_fields({heading: text_of(value) for heading, value in fields.items()})


def _room(runtime: Runtime, app: str | None) -> Modes:
    """Without the app any name may be an operation's."""
    return Modes(runtime.store, None if app is None else runtime.app.operations)


operations.command("list")(with_settings(list_operations, STORE_SETTINGS))
operations.command("pause")(with_settings(pause, STORE_SETTINGS))
operations.command("resume")(with_settings(resume, STORE_SETTINGS))
operations.command("drain")(with_settings(drain, STORE_SETTINGS))
