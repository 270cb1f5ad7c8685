"""App: the registry of operations a user constructs. Registration only: no verbs, no I/O."""

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from coatcheck.core.files import File
from coatcheck.core.paths import path_fault
from coatcheck.core.policy import Policies, Policy
from coatcheck.declaration import DeclarationError, PolicyOptions, policy_from

Handler = TypeVar("Handler", bound=Callable[..., Any])

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_VERSION = re.compile(r"[A-Za-z0-9._-]{1,32}")


@dataclass(frozen=True, slots=True)
class Operation:
    """One declared kind of work: its handler, its types and its policy.

    `result` is None where the handler returns nothing but a File.
    """

    name: str
    path: str
    version: str
    summary: str
    handler: Callable[..., Any]
    is_async: bool
    request: TypeAdapter[Any]
    result: TypeAdapter[Any] | None
    returns_file: bool
    policy: Policy


class App:
    """A named set of operations.

        app = App("bookshop")

        @app.operation("reports", path="/reports", timeout="2m", retention="7d")
        async def stock_report(request: StockReport, job: Job) -> StockSummary | File: ...

    Args:
        name: what a store knows this app by; a store refuses an app of another name. Lower-case letters, digits,
            `-` and `_`, beginning with a letter, at most 63.

    Raises:
        DeclarationError: the name is not one.
    """

    def __init__(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise DeclarationError(f"App name {name!r} must match {_NAME.pattern}.")
        self.name = name
        self._operations: dict[str, Operation] = {}

    @property
    def operations(self) -> Mapping[str, Operation]:
        """The declared operations by name, in the order of their declaration."""
        return types.MappingProxyType(self._operations)

    @property
    def policies(self) -> Policies:
        """The policies of all operations."""
        return Policies({name: operation.policy for name, operation in self._operations.items()})

    def operation(
        self, name: str, *, path: str | None = None, version: str = "1", **options: Unpack[PolicyOptions]
    ) -> Callable[[Handler], Handler]:
        """Declare the decorated function as the handler of an operation.

        The handler takes the request, whose annotation is its type, and the job. Its return annotation is the type
        of the result; `File` (alone or in a union) is for results that are not JSON.

        Args:
            name: unique in the app; lower-case letters, digits, `-` and `_`, beginning with a letter, at most 63.
            path: the collection's path, `/v1/{name}` by default.
            version: raise it when the request's type changes so that old payloads no longer fit.
            options: see `PolicyOptions`.

        Raises:
            DeclarationError: anything about the declaration is wrong.
        """

        def register(handler: Handler) -> Handler:
            try:
                self._add(name, path or f"/v1/{name}", version, handler, options)
            except DeclarationError as error:
                raise DeclarationError(f"Operation {name!r}: {error}.") from error.__cause__
            return handler

        return register

    def _add(self, name: str, path: str, version: str, handler: Callable[..., Any], options: PolicyOptions) -> None:
        if not _NAME.fullmatch(name):
            raise DeclarationError(f"the name must match {_NAME.pattern}")
        if name in self._operations:
            raise DeclarationError("the name is declared twice")
        if not _VERSION.fullmatch(version):
            raise DeclarationError(f"version {version!r} must match {_VERSION.pattern}")
        fault = path_fault(path, [operation.path for operation in self._operations.values()])
        if fault is not None:
            raise DeclarationError(fault)
        request_type, result_type = _handler_types(handler)
        json_type, returns_file = _without_file(result_type)
        is_async = inspect.iscoroutinefunction(handler)
        self._operations[name] = Operation(
            name=name,
            path=path,
            version=version,
            summary=_first_line(handler) or name,
            handler=handler,
            is_async=is_async,
            request=_adapter("request", request_type),
            result=None if json_type is File else _adapter("result", json_type),
            returns_file=returns_file,
            policy=policy_from(options, is_async),
        )


def _handler_types(handler: Callable[..., Any]) -> tuple[Any, Any]:
    if not inspect.isfunction(handler):
        raise DeclarationError("the handler must be a function, `def` or `async def`")
    parameters = list(inspect.signature(handler).parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) != 2 or any(parameter.kind not in positional for parameter in parameters):
        raise DeclarationError("the handler must take two arguments, the request and the job")
    try:
        hints = typing.get_type_hints(handler, include_extras=True)
    except NameError as error:
        raise DeclarationError(f"an annotation of the handler names what is not defined at import: {error}") from error
    if parameters[0].name not in hints:
        raise DeclarationError(f"annotate the handler's argument {parameters[0].name!r} with the type of the request")
    return hints[parameters[0].name], hints.get("return", Any)


def _without_file(result_type: Any) -> tuple[Any, bool]:
    """Split `File` off a result type: what is left for JSON (File where nothing is), and if it was there."""
    if result_type is File:
        return File, True
    if typing.get_origin(result_type) not in (typing.Union, types.UnionType):
        return result_type, False
    rest = [member for member in typing.get_args(result_type) if member is not File]
    return typing.Union[tuple(rest)], len(rest) < len(typing.get_args(result_type))  # noqa: UP007 - built at run time


def _adapter(what: str, annotation: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(annotation)
    except PydanticUserError as error:
        raise DeclarationError(f"Pydantic cannot make a schema of the {what} type {annotation!r}") from error


def _first_line(handler: Callable[..., Any]) -> str:
    return (inspect.getdoc(handler) or "").partition("\n")[0]
