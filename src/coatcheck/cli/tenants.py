"""`coatcheck tenants`: who may hand in work, with what share of the turns, and whether their jobs start."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

import typer

from coatcheck.cli.desk import AsJson, at_desk, text_of
from coatcheck.cli.flags import with_settings
from coatcheck.cli.operator import STORE_SETTINGS, operator
from coatcheck.cli.printing import print_fields, print_json, print_rows
from coatcheck.cli.revocations import REVOKING_SETTINGS, restore, revoke, show
from coatcheck.core import limits
from coatcheck.http.admin_answers import spending_fields, tenant_fields
from coatcheck.operators.spending import Spendings
from coatcheck.operators.tenants import Tenants
from coatcheck.settings import Settings
from coatcheck.store.controls import Tenant
from coatcheck.store.costs import SpendingRow

Name = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's name.")]
Weight = Annotated[
    float, typer.Option("--weight", help="Its share of the turns, beside tenants of weight 1.", metavar="NUMBER")
]
NewWeight = Annotated[
    float | None, typer.Option("--weight", help="Its share of the turns, beside tenants of weight 1.", metavar="NUMBER")
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=limits.PAGE_SIZE_MAX, help="How many at most.")]
After = Annotated[
    str | None, typer.Option("--after", help="Go on after this one, the last that was listed.", metavar="TENANT")
]

SPENDING_HEADINGS = ("window_began_at", "window_ends_at", "kind", "operation", "charged", "spent")
HEADINGS = ("name", "weight", "paused", "revocation", "created_at")

tenants = typer.Typer(help="Tenants: make them, weigh them, hold their jobs back, see what they cost.")


def add(name: Name, weight: Weight = 1.0, as_json: AsJson = False, *, settings: Settings) -> None:
    """Make a tenant. It hands in work with a key of its own: see `coatcheck keys create`.

    Examples:

      coatcheck tenants add acme

      coatcheck tenants add acme --weight 2
    """
    _show(settings, lambda rooms: rooms.add(name, weight, operator()), as_json)


def list_tenants(
    limit: Limit = limits.PAGE_SIZE_DEFAULT, after: After = None, as_json: AsJson = False, *, settings: Settings
) -> None:
    """List tenants by name.

    Examples:

      coatcheck tenants list

      coatcheck tenants list --limit 200 --after acme --json
    """
    found: Sequence[Tenant] = at_desk(settings, lambda runtime: Tenants(runtime.store).list(limit, after))
    fields = [tenant_fields(tenant) for tenant in found]
    if as_json:
        print_json({"tenants": fields})
    else:
        print_rows(HEADINGS, [[text_of(one[name]) for name in HEADINGS] for one in fields])


def set_tenant(name: Name, weight: NewWeight = None, as_json: AsJson = False, *, settings: Settings) -> None:
    """Change a tenant. Every process knows within a second.

    Example:

      coatcheck tenants set acme --weight 0.5
    """
    _show(settings, lambda rooms: rooms.set(name, operator(), weight), as_json)


def spending(
    name: Name, limit: Limit = limits.PAGE_SIZE_DEFAULT, as_json: AsJson = False, *, settings: Settings
) -> None:
    """Show what a tenant's jobs cost in each window, the newest first: charged at acceptance, and spent since.

    Example:

      coatcheck tenants spending acme --limit 200
    """
    found: Sequence[SpendingRow] = at_desk(settings, lambda runtime: Spendings(runtime.store).list(name, limit))
    fields = [spending_fields(row) for row in found]
    if as_json:
        print_json({"spending": fields})
    else:
        print_rows(SPENDING_HEADINGS, [[text_of(one[heading]) for heading in SPENDING_HEADINGS] for one in fields])


def pause(name: Name, as_json: AsJson = False, *, settings: Settings) -> None:
    """Start none of a tenant's jobs. New ones are taken, and what runs goes on.

    Example:

      coatcheck tenants pause acme
    """
    _show(settings, lambda rooms: rooms.set(name, operator(), is_paused=True), as_json)


def resume(name: Name, as_json: AsJson = False, *, settings: Settings) -> None:
    """Let a paused tenant's jobs start again.

    Example:

      coatcheck tenants resume acme
    """
    _show(settings, lambda rooms: rooms.set(name, operator(), is_paused=False), as_json)


def _show(settings: Settings, act: Callable[[Tenants], Awaitable[Tenant]], as_json: bool) -> None:
    fields = tenant_fields(at_desk(settings, lambda runtime: act(Tenants(runtime.store))))
    if as_json:
        print_json(fields)
    else:
        print_fields({name: text_of(value) for name, value in fields.items()})


tenants.command("add")(with_settings(add, STORE_SETTINGS))
tenants.command("list")(with_settings(list_tenants, STORE_SETTINGS))
tenants.command("show")(with_settings(show, STORE_SETTINGS))
tenants.command("set")(with_settings(set_tenant, STORE_SETTINGS))
tenants.command("spending")(with_settings(spending, STORE_SETTINGS))
tenants.command("pause")(with_settings(pause, STORE_SETTINGS))
tenants.command("resume")(with_settings(resume, STORE_SETTINGS))
tenants.command("revoke")(with_settings(revoke, REVOKING_SETTINGS))
tenants.command("restore")(with_settings(restore, STORE_SETTINGS))
