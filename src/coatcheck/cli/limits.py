"""`coatcheck limits`: what is allowed, where that comes from, and how it is changed at run time."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from coatcheck.admission.limit_defaults import limit_defaults
from coatcheck.cli.desk import AppRef, AsJson, at_desk, text_of
from coatcheck.cli.flags import with_settings
from coatcheck.cli.operator import NO_SUCH_WORK, STORE_SETTINGS, operator
from coatcheck.cli.printing import print_fields, print_json, print_rows
from coatcheck.core.problems import FieldError
from coatcheck.core.quotas import ALL, EACH, LimitKey, LimitName
from coatcheck.http.admin_answers import Fields, limit_fields
from coatcheck.operators.faults import invalid
from coatcheck.operators.limits import LimitInForce, Limits
from coatcheck.runtime import Runtime
from coatcheck.settings import Settings

Name = Annotated[str, typer.Argument(metavar="LIMIT", help=f"One of {', '.join(LimitName)}, or budget:KIND.")]
NameAndValue = Annotated[
    tuple[str, str],
    typer.Argument(
        metavar="LIMIT VALUE",
        help=f"LIMIT: one of {', '.join(LimitName)}, or budget:KIND. VALUE: the most that is allowed, a number, 0 for"
        " none, or `unlimited`.",
    ),
]
OfTenant = Annotated[
    str | None,
    typer.Option("--tenant", help="For this tenant; '*': for each that has none of its own.", metavar="NAME"),
]
OfOperation = Annotated[str | None, typer.Option("--operation", help="In this operation alone.", metavar="NAME")]

HEADINGS = ("name", "tenant", "operation", "value", "meaning", "origin")
UNLIMITED = "unlimited"

limits = typer.Typer(help="Limits: what is allowed, and where that comes from; change it at run time.")


def list_limits(
    tenant: OfTenant = None,
    operation: OfOperation = None,
    app: AppRef = None,
    as_json: AsJson = False,
    *,
    settings: Settings,
) -> None:
    """List limits as they hold, each with where it comes from: default, setting, declared or override.

    With --tenant or --operation, those that hold for it. Settings are read as `serve` would read them here; what an app
    declares is known only with --app.

    Examples:

      coatcheck limits list --app bookshop:app

      coatcheck limits list --tenant acme --operation reports --app bookshop:app
    """
    found = at_desk(settings, lambda runtime: _room(runtime, app).list(tenant, operation), app)
    fields = [limit_fields(limit) for limit in found]
    if as_json:
        print_json({"limits": fields})
    else:
        print_rows(HEADINGS, [_cells(one) for one in fields])


def set_limit(
    limit: NameAndValue,
    tenant: OfTenant = None,
    operation: OfOperation = None,
    app: AppRef = None,
    as_json: AsJson = False,
    *,
    settings: Settings,
) -> None:
    """Set a limit, in the place of what settings and declarations say. Every process knows within a second.

    Without --tenant it is for all tenants together. A store does not know which operations there are: a name of none is
    refused with --app only. Without it you are warned where the store has no job of the operation.

    Examples:

      coatcheck limits set queued 1000 --tenant acme

      coatcheck limits set submit_rate 5 --tenant '*' --operation reports --app bookshop:app

      coatcheck limits set running 0 --tenant acme

      coatcheck limits set budget:tokens 10000 --tenant acme

      coatcheck limits set queued unlimited --tenant acme
    """
    key, most = _key(limit[0], tenant, operation), _value(limit[1])

    async def act(room: Limits) -> LimitInForce:
        done = await room.set(key, most, operator())
        if app is None and operation is not None and not await room.has_work(operation):
            typer.echo(NO_SUCH_WORK.format(operation), err=True)
        return done

    _show(settings, act, as_json, app)


def clear(
    name: Name,
    tenant: OfTenant = None,
    operation: OfOperation = None,
    as_json: AsJson = False,
    *,
    settings: Settings,
) -> None:
    """Take back what `limits set` did: settings and declarations hold again.

    Example:

      coatcheck limits clear queued --tenant acme
    """
    key = _key(name, tenant, operation)
    _show(settings, lambda room: room.clear(key, operator()), as_json)


def _show(
    settings: Settings, act: Callable[[Limits], Awaitable[LimitInForce]], as_json: bool, app: str | None = None
) -> None:
    fields = limit_fields(at_desk(settings, lambda runtime: act(_room(runtime, app)), app))
    if as_json:
        print_json(fields)
    else:
        print_fields(dict(zip(HEADINGS, _cells(fields), strict=True)))


def _room(runtime: Runtime, app: str | None) -> Limits:
    """Without the app any name may be an operation's."""
    operations = None if app is None else runtime.app.operations
    return Limits(runtime.store, limit_defaults(runtime.settings, runtime.app), operations)


def _key(name: str, tenant: str | None, operation: str | None) -> LimitKey:
    return name, ALL if tenant is None else tenant, ALL if operation is None else operation


def _value(text: str) -> float | None:
    if text == UNLIMITED:
        return None
    try:
        return float(text)
    except ValueError:
        raise invalid(FieldError("VALUE", f"{text!r} is neither a number nor `{UNLIMITED}`.")) from None


def _cells(fields: Fields) -> list[str]:
    whose = {EACH: "each", ALL: "all together"}.get(fields["tenant"], fields["tenant"])
    where = fields["operation"] or "all together"
    value = fields["value"]
    number = "-" if value is None else f"{value:.12g}"
    return [fields["name"], whose, where, number, fields["meaning"], text_of(fields["origin"])]


limits.command("list")(with_settings(list_limits, STORE_SETTINGS))
# A negative number is a value that is refused, and no option.
limits.command("set", context_settings={"ignore_unknown_options": True})(with_settings(set_limit, STORE_SETTINGS))
limits.command("clear")(with_settings(clear, STORE_SETTINGS))
