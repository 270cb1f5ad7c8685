"""What a credential may be good for."""

from enum import StrEnum


class Scope(StrEnum):
    """submit: hand in work. read: jobs, results, lists. cancel: stop jobs and erase them. admin: the operators' API."""

    SUBMIT = "submit"
    READ = "read"
    CANCEL = "cancel"
    ADMIN = "admin"


CLIENT_SCOPES = frozenset({Scope.SUBMIT, Scope.READ, Scope.CANCEL})
"""All that a tenant's own clients need."""
