"""What commands of operators share: a store that is opened for them, the options of all, and values as texts."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar

import typer

from coatcheck.cli.loading import load_app_here
from coatcheck.core import durations
from coatcheck.core.problems import FieldError
from coatcheck.operating import open_store
from coatcheck.operators.faults import invalid
from coatcheck.runtime import Runtime
from coatcheck.settings import Settings

T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, as the admin API answers it.")]
AppRef = Annotated[
    str | None, typer.Option("--app", help="Where the app is, to know what it declares.", metavar="MODULE:APP")
]


def at_desk(settings: Settings, act: Callable[[Runtime], Awaitable[T]], app_ref: str | None = None) -> T:
    """Open the store, do something with it, and close it.

    Raises:
        StoreRefused: there is none, or it must not be used.
        StoreUnavailable: it cannot be reached.
        Refused: what the operators' room refuses.
    """
    app = None if app_ref is None else load_app_here(app_ref)

    async def run() -> T:
        async with open_store(settings, app) as runtime:
            return await act(runtime)

    return asyncio.run(run())


def seconds_of(text: str, option: str) -> float:
    """A duration as people write it.

    Raises:
        Refused: `invalid-request`.
    """
    try:
        return durations.seconds(text)
    except ValueError as error:
        raise invalid(FieldError(option, f"{error}.")) from None


def text_of(value: Any) -> str:
    """A value of an answer for a table: a dash for what is not there."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {one}" for name, one in value.items()) or "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
