"""Who changes something, and from where."""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from coatcheck.core.job import InstantMs
from coatcheck.core.jsontext import Json
from coatcheck.store.controls import AuditEntry


class Actor(Struct, frozen=True):
    """An operator, as the audit log names them."""

    name: str
    origin: str

    def entry(
        self,
        at: InstantMs,
        action: str,
        target: str,
        tenant: str | None = None,
        details: Mapping[str, Json] = MappingProxyType({}),
    ) -> AuditEntry:
        """What this operator does now, for the log."""
        return AuditEntry(at, self.name, self.origin, action, target, tenant, details)
