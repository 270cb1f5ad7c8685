"""Whose request this is. Without configured authentication everybody is the one tenant `default`."""

from starlette.types import Scope

DEFAULT_TENANT = "default"


def tenant_of(scope: Scope) -> str:
    """The tenant a request speaks for."""
    return DEFAULT_TENANT
