"""What is wrong with what an operator asks for, and where: the same for the command line and over HTTP."""

import math

from coatcheck.core import limits
from coatcheck.core.names import is_operation_name, tenant_name_fault
from coatcheck.core.problems import FieldError, Refused

IMPOSSIBLE = "What is asked for cannot be."


def invalid(*faults: FieldError) -> Refused:
    """The refusal of values that cannot be."""
    return Refused("invalid-request", IMPOSSIBLE, errors=faults)


def check_tenant_name(name: str, pointer: str) -> None:
    """Return if a tenant can have this name.

    Raises:
        Refused: `invalid-request`.
    """
    fault = tenant_name_fault(name)
    if fault is not None:
        raise invalid(FieldError(pointer, fault))


def check_operation_name(name: str, pointer: str) -> None:
    """Return if an operation can have this name.

    Raises:
        Refused: `invalid-request`.
    """
    if not is_operation_name(name):
        raise invalid(FieldError(pointer, "This is no operation's name: a-z, then a-z, 0-9, - and _, 63 at most."))


def check_number(value: float, least: float, most: float, pointer: str) -> None:
    """Return if the number is within its bounds.

    Raises:
        Refused: `invalid-request`.
    """
    if not (math.isfinite(value) and least <= value <= most):
        raise invalid(FieldError(pointer, f"This must be from {least:,.12g} to {most:,.12g}."))


def no_tenant(name: str) -> Refused:
    """The refusal where a tenant is not there."""
    return Refused("not-found", f"There is no tenant {name[: limits.TENANT_CHARS_MAX]!r}.")
