"""`coatcheck tenants revoke` and `restore`: the end of a tenant, watched until nothing is left to do."""

import asyncio
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status as Spinner

from coatcheck.cli.desk import AppRef, AsJson, at_desk, text_of
from coatcheck.cli.job_filters import BadOption
from coatcheck.cli.operator import operator
from coatcheck.cli.printing import print_fields, print_json, shown
from coatcheck.core.tenancy import Revocation
from coatcheck.http.admin_answers import tenant_fields
from coatcheck.operators.revocations import Revocations, revocations_of
from coatcheck.operators.tenants import Tenants
from coatcheck.runtime import Runtime
from coatcheck.settings import Settings
from coatcheck.store.controls import Tenant
from coatcheck.store.operating import TenantWork

LOOK_EVERY_S = 0.5
REVOKING_SETTINGS = ("store", "postgres_pooler", "on_revoke")

Name = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's name.")]
Policy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="What becomes of its jobs; else what the app's operations declare, and the setting on_revoke.",
        metavar="finish|quarantine|cancel|erase",
        show_default=False,
    ),
]
Wait = Annotated[bool, typer.Option("--wait", help="Return only when nothing is left to do.")]


def revoke(
    name: Name,
    policy: Policy = None,
    app: AppRef = None,
    wait: Wait = False,
    as_json: AsJson = False,
    *,
    settings: Settings,
) -> None:
    """Take no new work of a tenant, and let a policy say what becomes of its jobs.

    finish: they are done. quarantine: those that wait are held, and all of it can be undone. cancel: they are
    cancelled. erase: they are cancelled, payloads and results are deleted, and the tenant's keys are dead. A process
    with the role upkeep carries it out.

    Examples:

      coatcheck tenants revoke acme --policy quarantine

      coatcheck tenants revoke acme --policy erase --wait
    """
    wanted = _policy(policy)

    async def act(runtime: Runtime) -> tuple[Tenant, TenantWork]:
        revocations = revocations_of(settings, runtime.app, runtime.store)
        tenant = await revocations.revoke(name, wanted, operator())
        if wait:
            tenant = await _await_done(tenant, Tenants(runtime.store), revocations)
        return tenant, await revocations.measure(name)

    print_tenant(*at_desk(settings, act, app), as_json)


def restore(name: Name, as_json: AsJson = False, *, settings: Settings) -> None:
    """Undo a revocation, where nothing was cancelled or erased. Jobs that were held may start.

    Example:

      coatcheck tenants restore acme
    """

    async def act(runtime: Runtime) -> tuple[Tenant, TenantWork]:
        revocations = revocations_of(settings, runtime.app, runtime.store)
        return await revocations.restore(name, operator()), await revocations.measure(name)

    print_tenant(*at_desk(settings, act), as_json)


def show(name: Name, as_json: AsJson = False, *, settings: Settings) -> None:
    """Show a tenant, and how many of its jobs wait, run and are kept.

    Example:

      coatcheck tenants show acme
    """

    async def act(runtime: Runtime) -> tuple[Tenant, TenantWork]:
        tenant = await Tenants(runtime.store).find(name)
        return tenant, await runtime.store.measure_tenant(name)

    print_tenant(*at_desk(settings, act), as_json)


def print_tenant(tenant: Tenant, work: TenantWork, as_json: bool) -> None:
    """A tenant with what there is of it."""
    fields = {**tenant_fields(tenant), "queued": work.queued, "running": work.running, "finished": work.finished}
    if as_json:
        print_json(fields)
        return
    print_fields({name: text_of(value) for name, value in fields.items()})


async def _await_done(tenant: Tenant, tenants: Tenants, revocations: Revocations) -> Tenant:
    """The tenant once its revocation is done, which some process with the role upkeep brings about."""
    terminal = Console(stderr=True)
    with Spinner("Revoking", console=terminal) as spinner:
        while tenant.revocation is not None and tenant.revocation_done_at is None:
            work = await revocations.measure(tenant.name)
            left = f"{work.queued} queued, {work.running} running, {work.finished} finished"
            spinner.update(f"{shown(tenant.name)}: {left}")
            await asyncio.sleep(LOOK_EVERY_S)
            tenant = await tenants.find(tenant.name)
    return tenant


def _policy(text: str | None) -> Revocation | None:
    try:
        return None if text is None else Revocation(text)
    except ValueError:
        raise BadOption(f"--policy is {text!r}, but it must be one of {', '.join(Revocation)}.") from None
