"""From settings to the ways in which clients show who they are. What reads tokens is an extra."""

from collections.abc import Sequence
from importlib import import_module

from pydantic import SecretStr

from coatcheck.admission.authentication import Authentication, Tokens, Ways
from coatcheck.admission.credentials_views import ViewTokens
from coatcheck.admission.directory import Directory
from coatcheck.settings import Settings
from coatcheck.store.clock import Clock
from coatcheck.store.controls import ControlStore


class ExtraMissing(Exception):
    """A way in needs an extra that is not installed; the message says which, in one sentence."""


def make_authentication(settings: Settings, store: ControlStore, directory: Directory, clock: Clock) -> Authentication:
    """What the settings ask for. Tokens are read where there is an API, and only there the extra for that is needed.

    Raises:
        ExtraMissing: `auth` has jwt, and nothing that reads tokens is installed.
    """
    ways = Ways(
        keys="keys" in settings.auth,
        tokens=_tokens(settings, clock) if "jwt" in settings.auth and "api" in settings.roles else None,
        gateway_scopes=frozenset(settings.gateway_scopes),
        views=ViewTokens(_bytes_of(settings.signing_keys), clock) if _has_views(settings) else None,
    )
    return Authentication(store, directory, clock, ways)


def _has_views(settings: Settings) -> bool:
    return settings.has_auth and bool(settings.signing_keys)


def _bytes_of(secrets: Sequence[SecretStr]) -> list[bytes]:
    return [secret.get_secret_value().encode() for secret in secrets]


def _tokens(settings: Settings, clock: Clock) -> Tokens:
    try:
        tokens: Tokens = import_module("coatcheck.http.issuer_tokens").issuer_tokens(settings, clock)
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            f"auth has jwt, and {error.name}, which reads tokens, is not installed; install coatcheck[jwt]."
        ) from error
    return tokens
