"""`coatcheck audit`: what operators did."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from coatcheck.cli.desk import AsJson, at_desk, text_of
from coatcheck.cli.printing import print_json, print_rows
from coatcheck.core import limits
from coatcheck.http.admin_answers import audit_fields
from coatcheck.settings import Settings
from coatcheck.store.controls import AuditedEntry

Limit = Annotated[int, typer.Option("--limit", min=1, max=limits.PAGE_SIZE_MAX, help="How many at most.")]
Before = Annotated[int | None, typer.Option("--before", min=1, help="Go on before this one, the last that was listed.")]
OfTenant = Annotated[str | None, typer.Option("--tenant", help="Only what was done to this tenant.", metavar="NAME")]

HEADINGS = ("seq", "at", "actor", "origin", "action", "target", "tenant", "details")


def audit(
    limit: Limit = limits.PAGE_SIZE_DEFAULT,
    before: Before = None,
    tenant: OfTenant = None,
    as_json: AsJson = False,
    *,
    settings: Settings,
) -> None:
    """Show what operators did, newest first: who, what, when and from where.

    Examples:

      coatcheck audit

      coatcheck audit --tenant acme --limit 200 --json
    """
    found: Sequence[AuditedEntry] = at_desk(settings, lambda runtime: runtime.store.read_audit(limit, before, tenant))
    fields = [dict(audit_fields(audited)) for audited in found]
    if as_json:
        print_json({"entries": fields})
        return
    rows = [{**one, "details": json.dumps(one["details"], ensure_ascii=False)} for one in fields]
    print_rows(HEADINGS, [[text_of(one[name]) for name in HEADINGS] for one in rows])
