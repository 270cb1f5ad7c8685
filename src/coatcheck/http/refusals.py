"""The refusals that several parts of the edge give, each with its words in one place."""

import secrets

from coatcheck.core import limits
from coatcheck.core.problems import Refused


def not_found() -> Refused:
    return Refused("not-found", "There is nothing at this URL.")


def method_not_allowed(allow: str) -> Refused:
    return Refused("method-not-allowed", f"This resource supports {allow}.", headers=[("Allow", allow)])


def unauthenticated() -> Refused:
    """The one answer to every credential that is missing, wrong or dead: none of them learns which it is."""
    detail = "This takes a valid credential, and the request shows none."
    return Refused("unauthenticated", detail, headers=[("WWW-Authenticate", 'Bearer realm="coatcheck"')])


def forbidden(detail: str) -> Refused:
    return Refused("forbidden", detail)


def provider_unavailable() -> Refused:
    detail = "The identity provider's keys cannot be had now, so that no token can be checked."
    return Refused("identity-provider-unavailable", detail, headers=[soon()])


def store_unavailable() -> Refused:
    detail = "The store cannot answer now; what was asked is not known to be done."
    return Refused("store-unavailable", detail, headers=[soon()])


def draining() -> Refused:
    detail = "This server is shutting down and accepts no new work."
    return Refused("draining", detail, headers=[soon()])


def saturated(detail: str) -> Refused:
    return Refused("saturated", detail, headers=[soon()])


def internal_error() -> Refused:
    return Refused("internal-error", "The service met a fault of its own. It was logged under the correlation id.")


def soon() -> tuple[str, str]:
    """A short Retry-After, spread so that the clients of one outage do not come back as one."""
    return "Retry-After", str(1 + secrets.randbelow(limits.UNAVAILABLE_RETRY_AFTER_S_MAX))
