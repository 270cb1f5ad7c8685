"""Which jobs a command means, from its options."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import typer

from coatcheck.admission.instants import parse_moment
from coatcheck.core.durations import seconds
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.ids import is_job_id
from coatcheck.core.job import InstantMs
from coatcheck.core.states import Status
from coatcheck.store.clock import SystemClock
from coatcheck.store.operating import JobFilter

_WHEN = "An instant as in RFC 3339, or how long ago, such as 2h."
_OPTIONS: Mapping[str, tuple[str, str]] = {
    "tenant": ("Only jobs of this tenant.", "NAME"),
    "operation": ("Only jobs of this operation.", "NAME"),
    "category": ("Only jobs that failed with this error category.", "NAME"),
    "created_since": (f"Only jobs created then or later. {_WHEN}", "WHEN"),
    "created_until": (f"Only jobs created before. {_WHEN}", "WHEN"),
    "finished_since": (f"Only jobs that ended then or later. {_WHEN}", "WHEN"),
    "finished_until": (f"Only jobs that ended before. {_WHEN}", "WHEN"),
}
_STATUS = {"status": ("Only jobs in this status.", "NAME")}


class BadOption(Exception):
    """An option cannot hold; the message says why in one sentence."""


def with_filter(command: Callable[..., None], has_status: bool) -> Callable[..., None]:
    """Add the options of a filter to a command that takes one as `wanted`."""
    options = {**_OPTIONS, **(_STATUS if has_status else {})}
    own = [parameter for parameter in inspect.signature(command).parameters.values() if parameter.name != "wanted"]

    def run(**given: Any) -> None:
        values = {parameter.name: given.pop(parameter.name) for parameter in own}
        command(**values, wanted=filter_from(given))

    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in (*own, *(_option(name, *texts) for name, texts in options.items()))
    ]
    run.__doc__ = command.__doc__
    run.__name__ = command.__name__
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def filter_from(given: Mapping[str, str | None]) -> JobFilter:
    """The filter that options make.

    Raises:
        BadOption: a value is none of its kind.
    """
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name, kind in (("status", Status), ("category", ErrorCategory)):
        if name in values:
            values[name] = _one_of(kind, name, values[name])
    for name in values.keys() & {"created_since", "created_until", "finished_since", "finished_until"}:
        values[name] = _moment(name, values[name])
    return JobFilter(**values)


def checked_id(text: str) -> str:
    """A job id.

    Raises:
        BadOption: it has not the form of one.
    """
    if not is_job_id(text):
        raise BadOption(f"{text!r} is no job id; it is the `id` in the job's JSON and the end of its URL.")
    return text


def _one_of(kind: type[Status] | type[ErrorCategory], name: str, text: str) -> Status | ErrorCategory:
    try:
        return kind(text)
    except ValueError:
        raise BadOption(f"--{name} is {text!r}, but it must be one of {', '.join(kind)}.") from None


def _moment(name: str, text: str) -> InstantMs:
    now = SystemClock().now()
    try:
        return max(0, now - round(seconds(text) * 1000))
    except ValueError:
        moment = parse_moment(text, now) if "T" in text.upper() else None
    if moment is None or moment < 0:
        flag = name.replace("_", "-")
        raise BadOption(
            f"--{flag} is {text!r}, but it must be an instant such as 2026-12-01T08:00:00Z, or an age such as 2h."
        )
    return moment


def _option(name: str, description: str, metavar: str) -> inspect.Parameter:
    flag = "--" + name.replace("_", "-")
    option = typer.Option(None, flag, help=description, metavar=metavar, show_default=False)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=str | None)
