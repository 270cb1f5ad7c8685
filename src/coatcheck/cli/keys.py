"""`coatcheck keys`: API keys, each shown once, when it is made."""

from typing import Annotated

import typer

from coatcheck.cli.desk import AsJson, at_desk, seconds_of, text_of
from coatcheck.cli.flags import with_settings
from coatcheck.cli.operator import STORE_SETTINGS, operator
from coatcheck.cli.printing import print_fields, print_json, print_rows
from coatcheck.core import limits
from coatcheck.core.job import InstantMs
from coatcheck.core.problems import FieldError
from coatcheck.core.scopes import CLIENT_SCOPES, Scope
from coatcheck.http.admin_answers import key_fields, new_key_fields
from coatcheck.operators.faults import invalid
from coatcheck.operators.keys import Keys, NewKey, WantedKey
from coatcheck.runtime import Runtime
from coatcheck.settings import Settings
from coatcheck.store.controls import ApiKey

TenantName = Annotated[str, typer.Argument(metavar="TENANT", help="Whose key it is.")]
KeyId = Annotated[str, typer.Argument(metavar="KEY_ID", help="The 12 characters after `cck_`.")]
Label = Annotated[str, typer.Option("--label", help="What it is for, to be told apart by.", metavar="TEXT")]
Scopes = Annotated[str, typer.Option("--scopes", help=f"Some of {', '.join(Scope)}, between commas.", metavar="LIST")]
Expires = Annotated[
    str | None,
    typer.Option(
        "--expires-in", help="How long it is good for, such as 90d; else until it is revoked.", metavar="TIME"
    ),
]
Grace = Annotated[str, typer.Option("--grace", help="How long the old key is good beside the new one.", metavar="TIME")]

HEADINGS = ("id", "label", "scopes", "live", "created_at", "expires_at", "revoked_at", "last_used_at")
_DEFAULT_SCOPES = ",".join(scope for scope in Scope if scope in CLIENT_SCOPES)

keys = typer.Typer(help="API keys: make them, replace them, end them.")


def create(
    tenant: TenantName,
    label: Label = "",
    scopes: Scopes = _DEFAULT_SCOPES,
    expires_in: Expires = None,
    as_json: AsJson = False,
    *,
    settings: Settings,
) -> None:
    """Make a key and print it. This is the only time: what is kept of it is a digest.

    Examples:

      coatcheck keys create acme --label "the till" --expires-in 90d

      coatcheck keys create acme --scopes read --json
    """
    wanted_scopes = _scopes(scopes)

    async def act(runtime: Runtime) -> tuple[NewKey, InstantMs]:
        now = runtime.clock.now()
        expires_at = None if expires_in is None else now + round(seconds_of(expires_in, "--expires-in") * 1000)
        wanted = WantedKey(tenant, label, wanted_scopes, expires_at)
        return await Keys(runtime.store).create(wanted, operator()), now

    _print_new(*at_desk(settings, act), as_json)


def list_keys(tenant: TenantName, as_json: AsJson = False, *, settings: Settings) -> None:
    """List a tenant's keys, oldest first, ended ones included. No key can be read again, nor a digest.

    Example:

      coatcheck keys list acme
    """

    async def act(runtime: Runtime) -> list[dict[str, object]]:
        now = runtime.clock.now()
        return [dict(key_fields(key, now)) for key in await Keys(runtime.store).list(tenant)]

    found = at_desk(settings, act)
    if as_json:
        print_json({"keys": found})
    else:
        print_rows(HEADINGS, [[text_of(one[name]) for name in HEADINGS] for one in found])


def revoke(key_id: KeyId, as_json: AsJson = False, *, settings: Settings) -> None:
    """End a key now. Within a second no process takes it any more.

    Example:

      coatcheck keys revoke 7hK2mPq9XwZr
    """

    async def act(runtime: Runtime) -> tuple[ApiKey, InstantMs]:
        return await Keys(runtime.store).revoke(key_id, operator()), runtime.clock.now()

    fields = key_fields(*at_desk(settings, act))
    if as_json:
        print_json(fields)
    else:
        print_fields({name: text_of(value) for name, value in fields.items()})


def rotate(
    key_id: KeyId,
    grace: Grace = f"{limits.KEY_GRACE_S_DEFAULT // 3600}h",
    as_json: AsJson = False,
    *,
    settings: Settings,
) -> None:
    """Make a key like another one and print it. Both are good until the grace is over, then only the new one.

    Examples:

      coatcheck keys rotate 7hK2mPq9XwZr

      coatcheck keys rotate 7hK2mPq9XwZr --grace 15m
    """
    grace_s = seconds_of(grace, "--grace")

    async def act(runtime: Runtime) -> tuple[NewKey, InstantMs]:
        return await Keys(runtime.store).rotate(key_id, operator(), grace_s), runtime.clock.now()

    _print_new(*at_desk(settings, act), as_json)


def _print_new(new: NewKey, now: InstantMs, as_json: bool) -> None:
    """The key alone on standard output, so that it can be piped where it belongs; what else there is to say aside."""
    if as_json:
        print_json(new_key_fields(new, now))
        return
    ends = "until it is revoked" if new.key.expires_at is None else f"until {key_fields(new.key, now)['expires_at']}"
    scopes = ", ".join(new.key.scopes)
    typer.echo(f"Key {new.key.key_id} of tenant {new.key.tenant!r}, for {scopes}, good {ends}:", err=True)
    typer.echo(new.text)
    typer.echo("Keep it now: it cannot be shown again.", err=True)


def _scopes(text: str) -> frozenset[Scope]:
    names = [name.strip() for name in text.split(",")]
    if not set(names) <= set(Scope):
        raise invalid(FieldError("--scopes", f"Write some of {', '.join(Scope)}, between commas."))
    return frozenset(map(Scope, names))


keys.command("create")(with_settings(create, STORE_SETTINGS))
keys.command("list")(with_settings(list_keys, STORE_SETTINGS))
keys.command("revoke")(with_settings(revoke, STORE_SETTINGS))
keys.command("rotate")(with_settings(rotate, STORE_SETTINGS))
