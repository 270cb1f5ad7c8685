"""What a method of a resource asks of who calls it. Every one says it, so that none is open by being forgotten."""

from typing import Final

from msgspec import Struct

from coatcheck.core.scopes import Scope


class Access(Struct, frozen=True):
    """The scope it takes; None: it is for everyone.

    `is_view`: a view token of the job will do for it. `is_metrics`: settings may open it, or give it a key of its own.
    """

    scope: Scope | None
    is_view: bool = False
    is_metrics: bool = False


OPEN: Final = Access(None)
SUBMIT: Final = Access(Scope.SUBMIT)
READ: Final = Access(Scope.READ)
VIEW: Final = Access(Scope.READ, is_view=True)
CANCEL: Final = Access(Scope.CANCEL)
ADMIN: Final = Access(Scope.ADMIN)
METRICS: Final = Access(Scope.ADMIN, is_metrics=True)
